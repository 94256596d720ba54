#include "attack/mutator.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <vector>

#include "core/text.h"

namespace fathom::attack {
namespace {

using Json = nlohmann::ordered_json;

std::size_t below(std::size_t limit, Random& random) {
  return limit == 0 ? 0 : random() % limit;
}

template <class Container>
const auto& any_of(const Container& choices, Random& random) {
  return choices[below(choices.size(), random)];
}

/// Values that a reader may not expect, as JSON writes them.
const std::vector<std::string>& odd_values() {
  static const std::vector<std::string> values{"null",
                                               "true",
                                               "0",
                                               "-1",
                                               "1",
                                               "-0.0",
                                               "0.5",
                                               "1e308",
                                               "1e309",
                                               "-1e309",
                                               "1e-320",
                                               "9223372036854775807",
                                               "9223372036854775808",
                                               "-9223372036854775808",
                                               "18446744073709551615",
                                               "18446744073709551616",
                                               "1e18",
                                               "2147483648",
                                               "65536",
                                               "16777216",
                                               "\"\"",
                                               "\"x\"",
                                               "\"NaN\"",
                                               "\"\\u0000\"",
                                               "\"\\ud800\"",
                                               "\"../../../../tmp/x\"",
                                               "\"/etc/passwd\"",
                                               "\"<script>alert(1)</script>\"",
                                               "\"$(touch /tmp/pwned)\"",
                                               "\"\\u001b[31mred\"",
                                               "[]",
                                               "{}",
                                               "[[[[[[1]]]]]]",
                                               "[1,2,3]",
                                               "{\"a\":1}",
                                               "\"" + std::string(5000, 'a') + "\"",
                                               "\"finished\"",
                                               "\"diverged\"",
                                               "\"running\"",
                                               "0.1",
                                               "3.9999999999999996",
                                               "1e5"};
  return values;
}

/// Calls `visit` with every value inside.
void walk(Json& value, const std::function<void(Json&)>& visit) {
  visit(value);
  if (!value.is_structured()) return;
  for (auto& inner : value) walk(inner, visit);
}

Json& any_value(Json& document, Random& random) {
  std::vector<Json*> values;
  walk(document, [&](Json& value) { values.push_back(&value); });
  return *any_of(values, random);
}

/// Odd values travel through the document as strings between these marks.
constexpr std::string_view kRaw = "@raw@";

void mutate_document(Json& document, Random& random) {
  Json& value = any_value(document, random);
  switch (below(6, random)) {
    case 0:
      if (value.is_object() && !value.empty()) {
        auto gone = value.begin();
        std::advance(gone, below(value.size(), random));
        value.erase(gone);
        return;
      }
      break;
    case 1:
      if (value.is_array() && !value.empty()) {
        value.push_back(value[below(value.size(), random)]);
        return;
      }
      break;
    case 2:
      value = any_value(document, random);
      return;
    case 3:
      if (value.is_object()) {
        value[any_of(std::array{"", "id", "steps", "\u00fc", "__proto__"}, random)] = 1;
        return;
      }
      break;
    default:
      break;
  }
  value = fmt::format("{}{}{}", kRaw, any_of(odd_values(), random), kRaw);
}

/// "@raw@1e309@raw@" in quotes becomes 1e309, whatever the writer escaped inside.
std::string with_raw_values(const std::string& text) {
  std::string result;
  std::size_t at = 0;
  const std::string open = fmt::format("\"{}", kRaw), close = fmt::format("{}\"", kRaw);
  for (;;) {
    const std::size_t begin = text.find(open, at);
    const std::size_t end = begin == std::string::npos ? begin : text.find(close, begin + 1);
    if (end == std::string::npos) return result + text.substr(at);
    const std::string quoted =
        "\"" + text.substr(begin + open.size(), end - begin - open.size()) + "\"";
    const Json raw = Json::parse(quoted, nullptr, false);
    result += text.substr(at, begin - at) + (raw.is_string() ? raw.get<std::string>() : "0");
    at = end + close.size();
  }
}

std::string mutate_json(const std::string& text, bool keep_checksum, Random& random) {
  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return text;
  if (!keep_checksum && document.is_object()) document.erase("checksum");
  for (std::size_t n = 1 + below(3, random); n > 0; --n) mutate_document(document, random);
  return with_raw_values(document.dump(1, ' ', false, Json::error_handler_t::replace));
}

std::string mutate_line(std::vector<std::string> lines, Random& random,
                        const std::function<std::string(const std::string&)>& change) {
  const std::size_t at = below(lines.size(), random);
  switch (below(5, random)) {
    case 0:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at),
                   lines[below(lines.size(), random)]);
      break;
    default:
      lines[at] = change(lines[at]);
  }
  return join(lines, "\n");
}

std::string mutate_toml(const std::string& text, bool keep_checksum, Random& random) {
  std::string body = text;
  if (body.starts_with("# checksum") && !keep_checksum) body.erase(0, body.find('\n') + 1);
  return mutate_line(split(body, '\n'), random, [&](const std::string& line) -> std::string {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos || below(6, random) == 0) {
      const std::size_t parts = below(2, random) == 0 ? 3 : 50'000;
      std::string key = "a";
      for (std::size_t i = 0; i < parts; ++i) key += ".a";
      return any_of(std::array<std::string, 4>{key + " = 1", "[" + line + "]", "[[x]]", "x = 1"},
                    random);
    }
    std::string value = any_of(odd_values(), random);
    if (below(4, random) == 0)
      value = any_of(std::array{"nan", "-inf", "1979-05-27", "0x7f"}, random);
    return line.substr(0, equals) + "= " + value;
  });
}

std::string mutate_csv(const std::string& text, bool keep_checksum, Random& random) {
  std::string body = text;
  if (!keep_checksum) body = std::regex_replace(body, std::regex("xxh3:[0-9a-f]{16}"), "note");
  return mutate_line(split(body, '\n'), random, [&](const std::string& line) {
    std::vector<std::string> cells = split(line, ',');
    std::string& cell = cells[below(cells.size(), random)];
    cell = any_of(odd_values(), random);
    if (below(8, random) == 0) cells.pop_back();
    return join(cells, ",");
  });
}

std::string mutate_bytes(std::string bytes, Random& random) {
  const std::size_t at = below(bytes.size() + 1, random);
  switch (below(6, random)) {
    case 0:
      return bytes.substr(0, at);
    case 1:
      return bytes.insert(at, std::string(1 + below(40, random), static_cast<char>(random())));
    case 2:
      return bytes.erase(at, 1 + below(40, random));
    case 3: {
      const std::uint64_t value = any_of(
          std::array<std::uint64_t, 6>{0, 1, ~0ull, 1ull << 63, 1ull << 31, 0xffffull}, random);
      const std::size_t size = std::min<std::size_t>(8, bytes.size() - at);
      std::memcpy(bytes.data() + at, &value, size);
      return bytes;
    }
    default:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8, random)));
      return bytes;
  }
}

/// The header as JSON, its length made right; or the bytes as they come.
std::string mutate_safetensors(const std::string& bytes, bool keep_checksum, Random& random) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size || below(4, random) == 0) return mutate_bytes(bytes, random);
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > bytes.size() - sizeof size) return mutate_bytes(bytes, random);
  Json header = Json::parse(bytes.substr(sizeof size, size), nullptr, false);
  if (header.is_object() && header.contains("__metadata__") && !keep_checksum) {
    header["__metadata__"].erase("checksum");
    if (below(2, random) == 0) header["__metadata__"].erase("tensor_checksums");
  }
  const std::string text = mutate_json(header.dump(), true, random);
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text +
         bytes.substr(sizeof size + size);
}

}  // namespace

std::string mutate(const std::string& text, Grammar grammar, Random& random) {
  const bool keep_checksum = below(10, random) == 0;
  if (below(8, random) == 0) return mutate_bytes(text, random);
  switch (grammar) {
    case Grammar::json:
      return mutate_json(text, keep_checksum, random);
    case Grammar::json_lines:
      return mutate_line(split(text, '\n'), random, [&](const std::string& line) {
        return mutate_json(line, keep_checksum, random);
      });
    case Grammar::toml:
      return mutate_toml(text, keep_checksum, random);
    case Grammar::csv:
      return mutate_csv(text, keep_checksum, random);
    case Grammar::safetensors:
      return mutate_safetensors(text, keep_checksum, random);
    case Grammar::bytes:
      return mutate_bytes(text, random);
  }
  return text;
}

std::string damage(const std::string& bytes, Random& random, std::string& what) {
  if (below(8, random) == 0) {
    const std::size_t size = below(bytes.size(), random);
    what = fmt::format("cut to {} of {} bytes", size, bytes.size());
    return bytes.substr(0, size);
  }
  const std::size_t bit = below(8 * bytes.size(), random);
  what = fmt::format("bit {} of byte {}", bit % 8, bit / 8);
  std::string damaged = bytes;
  damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
  return damaged;
}

}  // namespace fathom::attack
