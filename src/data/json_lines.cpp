#include "data/json_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"

namespace fathom::data {
namespace {

constexpr const char* kBlanks = " \t\r\n";
constexpr std::size_t kLongestLine = 1u << 28;

}  // namespace

bool is_json_lines_name(std::filesystem::path name) {
  for (const char* packing : {".gz", ".xz", ".zst"}) {
    if (name.extension() == packing) name.replace_extension();
  }
  return name.extension() == ".jsonl" || name.extension() == ".ndjson";
}

bool looks_like_json_lines(std::string_view first_line, const std::string& field) {
  if (!first_line.starts_with('{')) return false;
  // The line may be cut, so it is not parsed: "field", a colon and an opening quote.
  const std::string key = '"' + field + '"';
  const std::size_t found = first_line.find(key);
  if (found == std::string_view::npos) return false;
  const std::size_t colon = first_line.find_first_not_of(kBlanks, found + key.size());
  if (colon == std::string_view::npos || first_line[colon] != ':') return false;
  const std::size_t value = first_line.find_first_not_of(kBlanks, colon + 1);
  return value != std::string_view::npos && first_line[value] == '"';
}

/// A whole line, whatever its length; false at the end.
bool JsonLines::read_line(std::string& line) {
  line.clear();
  line_offset_ = offset_;
  while (!line.ends_with('\n')) {
    const std::string_view fragment = lines_.next();
    if (fragment.empty()) break;
    line += fragment;
    if (line.size() > kLongestLine) {
      throw DataError(fmt::format("{}: line {} is longer than 256 MiB", name_, line_number_ + 1));
    }
  }
  offset_ += line.size();
  ++line_number_;
  return !line.empty();
}

bool JsonLines::next(std::string& text) {
  for (std::string line; read_line(line);) {
    if (line.find_first_not_of(kBlanks) == std::string::npos) continue;
    const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) {
      throw DataError(
          fmt::format("{}: line {} is not a JSON object in UTF-8", name_, line_number_));
    }
    const auto found = object.find(field_);
    if (found == object.end() || !found->is_string()) {
      std::vector<std::string> texts;
      for (const auto& [key, value] : object.items()) {
        if (value.is_string()) texts.push_back(key);
      }
      throw DataError(fmt::format(
          "{}: line {} has no text in '{}'; --text-field, in a study corpus.text_field, names "
          "another ({})",
          name_, line_number_, field_,
          texts.empty() ? "it has none" : "it has: " + join(texts, ", ")));
    }
    text = found->get<std::string>();
    if (!text.empty()) return true;
  }
  return false;
}

}  // namespace fathom::data
