// Everything the lab's page shows, as one JSON document: every claim of the table with what was
// found, and the results of one lab directory. web/schema/lab.schema.json describes it; the page's
// types are made from that file, and a test checks what is written here against it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace fathom::report {

inline constexpr std::string_view kLabSchema = "fathom.lab_page.v1";

/// Of a directory of 'fathom lab run --out'. DataError when it holds no results, or damaged ones.
nlohmann::ordered_json make_lab_document(const std::filesystem::path& directory);

}  // namespace fathom::report
