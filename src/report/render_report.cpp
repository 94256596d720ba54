#include "report/render_report.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/text.h"

namespace fathom::embedded {
extern const std::string_view report_html;
}

namespace fathom::report {
namespace {

constexpr std::string_view kTitleMark = "@fathom-title@";
constexpr std::string_view kDocumentMark = "@fathom-document@";

/// The document for a script element. '<', '>' and '&' occur only inside JSON strings, where
/// \u003c means the same; U+2028 and U+2029 end lines in old JavaScript.
std::string escape_for_script(std::string_view json) {
  std::string safe;
  safe.reserve(json.size() + json.size() / 64);
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<') {
      safe += "\\u003c";
    } else if (c == '>') {
      safe += "\\u003e";
    } else if (c == '&') {
      safe += "\\u0026";
    } else if (json.substr(i).starts_with("\xe2\x80\xa8")) {
      safe += "\\u2028";
      i += 2;
    } else if (json.substr(i).starts_with("\xe2\x80\xa9")) {
      safe += "\\u2029";
      i += 2;
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string escape_html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string text_field(const nlohmann::json& document, const char* name) {
  const auto found = document.find(name);
  return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The title of a document that is one of ours.
std::string checked_title(std::string_view json_document, const std::string& origin) {
  const nlohmann::json document = parse_json(json_document, origin);
  if (!document.is_object()) {
    throw DataError(fmt::format("{}: a report document is a JSON object", origin));
  }
  const std::string schema = text_field(document, "schema");
  if (schema != kReportSchema) {
    throw DataError(fmt::format("{}: schema is '{}', but this program reads '{}'", origin,
                                printable(schema), kReportSchema));
  }
  const std::string title = text_field(document, "title");
  return title.empty() ? "Fathom report" : title;
}

}  // namespace

std::string render_report(std::string_view json_document, const std::string& origin) {
  const std::string title = escape_html(checked_title(json_document, origin));
  const std::string_view page = embedded::report_html;
  const std::size_t title_at = page.find(kTitleMark);
  const std::size_t document_at = page.find(kDocumentMark);
  if (title_at == page.npos || document_at == page.npos || document_at < title_at) {
    throw InternalError("the report template lacks its marks");
  }
  const std::size_t title_end = title_at + kTitleMark.size();
  std::string result;
  result.reserve(page.size() + json_document.size() + json_document.size() / 16);
  result += page.substr(0, title_at);
  result += title;
  result += page.substr(title_end, document_at - title_end);
  result += escape_for_script(json_document);
  result += page.substr(document_at + kDocumentMark.size());
  return result;
}

void write_report(const std::filesystem::path& path, std::string_view json_document,
                  const std::string& origin) {
  write_file_atomically(path, render_report(json_document, origin));
}

}  // namespace fathom::report
