// The study report: one HTML file that works from file:// without a network.
//
//   report = template of web/ (script and style inside, compiled into the binary) + one JSON
//            document of schema fathom.report/1
//
// The document is data, never markup: inside the page no '<', '>' or '&' of it survives unescaped,
// so no string in it can end the element it stands in. Memory: the document and the page, twice.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fathom::report {

inline constexpr std::string_view kReportSchema = "fathom.report/1";

/// DataError when the text is no JSON object or its "schema" is another; `origin` names it there.
std::string render_report(std::string_view json_document,
                          const std::string& origin = "report document");

/// Renders and writes; readers of `path` see the old file or the whole new one.
void write_report(const std::filesystem::path& path, std::string_view json_document,
                  const std::string& origin = "report document");

}  // namespace fathom::report
