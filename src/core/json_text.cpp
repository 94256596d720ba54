#include "core/json_text.h"

#include <fmt/format.h>

#include "core/checksum.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_file.h"

namespace fathom {
namespace {

template <class Document>
Document parse_as(std::string_view text, const std::string& origin) {
  try {
    Document document = Document::parse(text);
    if (document.is_object() && document.contains(kChecksum) && document[kChecksum].is_string()) {
      require_checksum(text, document[kChecksum].template get_ref<const std::string&>(), origin,
                       "or take its key \"checksum\" out if it was edited by hand");
    }
    return document;
  } catch (const nlohmann::json::parse_error& error) {
    std::size_t line = 1;
    std::size_t column = 1;
    for (std::size_t i = 0; i + 1 < error.byte && i < text.size(); ++i) {
      const bool line_break = text[i] == '\n';
      line += line_break;
      column = line_break ? 1 : column + 1;
    }
    throw DataError(fmt::format("{}:{}:{}: not valid JSON", origin, line, column));
  } catch (const nlohmann::json::exception& error) {
    throw_json_error(origin, error);  // a number beyond the range of double
  }
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& origin) {
  return parse_as<nlohmann::json>(text, origin);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& origin) {
  return parse_as<nlohmann::ordered_json>(text, origin);
}

nlohmann::json read_json_file(const std::filesystem::path& path) {
  return parse_json(read_text_file(path), path.string());
}

std::string json_text(const nlohmann::ordered_json& document, int indent) {
  return document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

nlohmann::ordered_json number_or_null(std::optional<double> value) {
  if (value && std::isfinite(*value)) return *value;
  return nullptr;
}

nlohmann::ordered_json whole_number(double value) {
  constexpr double kExact = 0x1p53;
  if (std::fabs(value) < kExact) return std::llround(value);
  return value;
}

}  // namespace fathom
