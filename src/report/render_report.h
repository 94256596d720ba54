// The study report, the lab's page and a probe's: each one HTML file that works from file://
// without a network.
//
//   page = template of web/ (script and style inside, compiled into the binary) + one JSON document
//          (report/report_document.h, report/lab_document.h)
//
// The document is data, never markup: inside the page no '<', '>' or '&' of it survives unescaped,
// so no string in it can end the element it stands in. Memory: the document and the page, twice.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace fathom::report {

/// The page.
std::string render_report(const nlohmann::ordered_json& document);
std::string render_lab(const nlohmann::ordered_json& document);

/// Renders and writes; readers of `path` see the old file or the whole new one.
void write_report(const std::filesystem::path& path, const nlohmann::ordered_json& document);
void write_lab(const std::filesystem::path& path, const nlohmann::ordered_json& document);
/// The JSON of `fathom probe`.
void write_probe(const std::filesystem::path& path, const nlohmann::ordered_json& document);

}  // namespace fathom::report
