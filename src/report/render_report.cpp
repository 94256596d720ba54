#include "report/render_report.h"

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"

namespace fathom::embedded {
extern const std::string_view report_html;
extern const std::string_view lab_html;
extern const std::string_view probe_html;
}  // namespace fathom::embedded

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

std::string title_of(const nlohmann::ordered_json& document) {
  const auto found = document.find("title");
  const bool given = found != document.end() && found->is_string();
  const std::string title = given ? found->get<std::string>() : "";
  return title.empty() ? "Fathom report" : title;
}

std::string render(std::string_view page, const nlohmann::ordered_json& document) {
  const std::string json = json_text(document, -1);
  const std::size_t title_at = page.find(kTitleMark);
  const std::size_t document_at = page.find(kDocumentMark);
  if (title_at == page.npos || document_at == page.npos || document_at < title_at) {
    throw InternalError("the template of a page lacks its marks");
  }
  const std::size_t title_end = title_at + kTitleMark.size();
  std::string result;
  result.reserve(page.size() + json.size() + json.size() / 16);
  result += page.substr(0, title_at);
  result += escape_html(title_of(document));
  result += page.substr(title_end, document_at - title_end);
  result += escape_for_script(json);
  result += page.substr(document_at + kDocumentMark.size());
  return result;
}

}  // namespace

std::string render_report(const nlohmann::ordered_json& document) {
  return render(embedded::report_html, document);
}

std::string render_lab(const nlohmann::ordered_json& document) {
  return render(embedded::lab_html, document);
}

void write_report(const std::filesystem::path& path, const nlohmann::ordered_json& document) {
  write_file_atomically(path, render_report(document));
}

void write_probe(const std::filesystem::path& path, const nlohmann::ordered_json& document) {
  write_file_atomically(path, render(embedded::probe_html, document));
}

void write_lab(const std::filesystem::path& path, const nlohmann::ordered_json& document) {
  write_file_atomically(path, render_lab(document));
}

}  // namespace fathom::report
