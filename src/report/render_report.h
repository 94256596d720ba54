// The study report, the lab's page, a probe's and the map of shapes: each one HTML file that works
// from file:// without a network.
//
//   page = template of web/ (script and style inside, compiled into the binary) + one JSON document
//          (report/report_document.h, report/lab_document.h, report/map_document.h)
//
// The document is data, never markup: inside the page no '<', '>' or '&' of it survives unescaped,
// so no string in it can end the element it is in. Memory: the document and the page, twice.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace fathom::report {

/// The page.
std::string render_report(const nlohmann::ordered_json& document);
std::string render_lab(const nlohmann::ordered_json& document);
std::string render_map(const nlohmann::ordered_json& document);

/// The document inside one of these pages; DataError where there is none.
nlohmann::json document_of_page(std::string_view page, const std::string& origin);

/// The same pages for 'fathom serve': they may ask their own server and no other. `news`: the
/// address that they ask for updates; "" for none.
std::string render_served_report(const nlohmann::ordered_json& document, const std::string& news);
std::string render_served_lab(const nlohmann::ordered_json& document);
std::string render_served_probe(const nlohmann::ordered_json& document);
std::string render_served_map(const nlohmann::ordered_json& document, const std::string& news);
/// The overview (web/schema/serve.schema.json).
std::string render_overview(const nlohmann::ordered_json& document, const std::string& news);

/// Renders and writes; readers of `path` see the old file or the whole new one.
void write_report(const std::filesystem::path& path, const nlohmann::ordered_json& document);
void write_lab(const std::filesystem::path& path, const nlohmann::ordered_json& document);
/// The JSON of `fathom probe`.
void write_probe(const std::filesystem::path& path, const nlohmann::ordered_json& document);

}  // namespace fathom::report
