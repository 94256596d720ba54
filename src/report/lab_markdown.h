// The result of one claim as a page of Markdown with its charts next to it, as in docs/results/lab.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace fathom::report {

struct MarkdownPage {
  std::string text;
  struct Drawing {
    std::string name;  // "k-hop-trained-1.svg"
    std::string svg;
  };
  std::vector<Drawing> drawings;
};

/// Statement, experiment, criteria with what was measured, tables, charts and notes of a result
/// that lab/frame/result_json.h wrote.
MarkdownPage lab_markdown(const nlohmann::ordered_json& result);

/// A page for every result of a lab directory, written into `folder`; the pages' paths. DataError
/// when the directory holds no results.
std::vector<std::filesystem::path> write_lab_markdown(const std::filesystem::path& directory,
                                                      const std::filesystem::path& folder);

}  // namespace fathom::report
