#include "report/render_report.h"

#include <utility>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"

namespace fathom::embedded {
extern const std::string_view report_html;
extern const std::string_view lab_html;
extern const std::string_view probe_html;
extern const std::string_view map_html;
extern const std::string_view serve_html;
}  // namespace fathom::embedded

namespace fathom::report {
namespace {

/// Content policies: a file sends no requests; a served page asks its server.
constexpr const char* kFilePolicy = "form-action 'none'";
constexpr const char* kServedPolicy = "connect-src 'self'; form-action 'self'";

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

/// The page with its marks filled in, which occur in this order.
std::string fill(std::string_view page,
                 const std::vector<std::pair<std::string_view, std::string>>& marks) {
  std::string result;
  for (const auto& [mark, value] : marks) {
    const std::size_t at = page.find(mark);
    if (at == page.npos) throw InternalError("the template of a page lacks its marks");
    result.append(page.substr(0, at)).append(value);
    page.remove_prefix(at + mark.size());
  }
  return result.append(page);
}

std::string render(std::string_view page, const nlohmann::ordered_json& document,
                   const char* policy = kFilePolicy, const std::string& news = "") {
  return fill(page, {{"@fathom-policy@", policy},
                     {"@fathom-news@", escape_html(news)},
                     {"@fathom-title@", escape_html(title_of(document))},
                     {"@fathom-document@", escape_for_script(json_text(document, -1))}});
}

}  // namespace

std::string render_report(const nlohmann::ordered_json& document) {
  return render(embedded::report_html, document);
}

std::string render_lab(const nlohmann::ordered_json& document) {
  return render(embedded::lab_html, document);
}

std::string render_map(const nlohmann::ordered_json& document) {
  return render(embedded::map_html, document);
}

std::string render_served_report(const nlohmann::ordered_json& document, const std::string& news) {
  return render(embedded::report_html, document, kServedPolicy, news);
}

std::string render_served_lab(const nlohmann::ordered_json& document) {
  return render(embedded::lab_html, document, kServedPolicy);
}

std::string render_served_probe(const nlohmann::ordered_json& document) {
  return render(embedded::probe_html, document, kServedPolicy);
}

nlohmann::json document_of_page(std::string_view page, const std::string& origin) {
  constexpr std::string_view kBegin = "id=\"fathom-document\">", kEnd = "</script>";
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = begin == page.npos ? page.npos : page.find(kEnd, begin);
  if (end == page.npos) throw DataError(origin + ": no page that fathom wrote");
  return parse_json(page.substr(begin + kBegin.size(), end - begin - kBegin.size()), origin);
}

std::string render_served_map(const nlohmann::ordered_json& document, const std::string& news) {
  return render(embedded::map_html, document, kServedPolicy, news);
}

std::string render_overview(const nlohmann::ordered_json& document, const std::string& news) {
  return render(embedded::serve_html, document, kServedPolicy, news);
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
