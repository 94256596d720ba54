#include "core/spec_keys.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"

namespace fathom {
namespace {

bool holds(KeyRule rule, double value) {
  return value >= rule.low && value <= rule.high;  // no for NaN
}

std::string out_of_range(const std::string& value, KeyRule rule) {
  if (std::isinf(rule.high)) return fmt::format("= {} must be at least {}", value, rule.low);
  return fmt::format("= {} must lie between {} and {}", value, rule.low, rule.high);
}

/// An item read with `parse` (core/units.h); its error, which begins with the key, gets the place
/// in the file.
template <class Parse>
auto parsed(const TomlReader& table, const char* key, const std::string& item, const Parse& parse) {
  try {
    return parse(item, key);
  } catch (const ConfigError& error) {
    table.fail(key, std::string(error.what()).substr(std::strlen(key) + 1));
  }
}

}  // namespace

std::string toml_text(std::int64_t value) {
  return fmt::format("{}", value);
}

std::string toml_text(double value) {
  // {} is the shortest text that reads back as the same double; TOML wants 1.0, not 1.
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string toml_text(bool value) {
  return value ? "true" : "false";
}

std::string toml_text(const std::string& value) {
  std::string quoted = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\u{:04X}", byte);
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::int64_t KeyReader::whole(const char* key, std::int64_t fallback, KeyRule rule) {
  const std::int64_t value = rule.suffixed ? count(key, fallback) : table_.integer(key, fallback);
  if (!holds(rule, as_double(value))) table_.fail(key, out_of_range(toml_text(value), rule));
  return value;
}

std::int64_t KeyReader::count(const char* key, std::int64_t fallback) {
  const std::vector<std::string> items = table_.list(key);
  if (items.size() > 1) table_.fail(key, "must be one number");
  return items.empty() ? fallback : parsed(table_, key, items.front(), parse_whole);
}

void KeyReader::read_list(const char* key, std::vector<std::string>& values) {
  const std::vector<std::string> items = table_.list(key);
  if (table_.has(key)) values = items;
}

void KeyReader::read_list(const char* key, std::vector<double>& values) {
  read_items(key, values,
             [&](const std::string& item) { return parsed(table_, key, item, parse_count); });
}

void KeyReader::read_list(const char* key, std::vector<std::int64_t>& values) {
  read_items(key, values,
             [&](const std::string& item) { return parsed(table_, key, item, parse_whole); });
}

void KeyReader::read_list(const char* key, std::vector<std::uint64_t>& values) {
  read_items(key, values, [&](const std::string& item) {
    return item == "0" ? 0 : static_cast<std::uint64_t>(parsed(table_, key, item, parse_whole));
  });
}

double KeyReader::number(const char* key, double fallback, KeyRule rule) {
  const double value = table_.number(key, fallback);
  if (!holds(rule, value)) table_.fail(key, out_of_range(fmt::format("{}", value), rule));
  return value;
}

void KeyChecker::check(const char* key, double value, const std::string& text, KeyRule rule) const {
  if (holds(rule, value)) return;
  throw ConfigError(fmt::format("{}: {} {}", where_, key, out_of_range(text, rule)));
}

std::string KeyDescriber::join_names(const std::vector<std::string>& names) {
  return join(names, ", ");
}

std::string KeyDescriber::range_text(KeyRule rule, bool whole) {
  const char* kind = whole ? "whole" : "number";
  if (std::isfinite(rule.low) && std::isfinite(rule.high)) {
    return fmt::format("{}, {} to {}", kind, rule.low, rule.high);
  }
  return std::isfinite(rule.low) ? fmt::format("{}, from {}", kind, rule.low) : kind;
}

}  // namespace fathom
