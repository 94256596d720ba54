// The keys of a spec, declared once: the struct lists them, and reading TOML, writing it and help
// are visitors of that list.
//
//   struct Spec {
//     std::int64_t batch = 16;
//
//     template <class Self, class Visitor>  // Self: Spec or const Spec
//     static void visit_keys(Self& spec, Visitor& key) {
//       key("batch", spec.batch, "sequences of one micro-batch", {1, 1 << 20});
//     }
//   };
//
// Values are whole numbers, numbers, flags, strings, enums with names, and lists of strings, of
// whole numbers and of counts such as "1.3M".
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "core/counts.h"
#include "core/enum_names.h"
#include "core/toml_reader.h"

namespace fathom {

struct KeyRule {
  double low = -std::numeric_limits<double>::infinity();  // both ends count
  double high = std::numeric_limits<double>::infinity();
  /// Left out of the written file while it is zero, false or empty: the text, and what is hashed
  /// from it, stays that of a version which did not know the key.
  bool only_when_set = false;
  bool suffixed = false;  // a whole number may be written as a count, "2K"
};

/// Value as TOML: "1.0", "true", "\"cpu\"". Numbers read back as the same double.
std::string toml_text(std::int64_t value);
std::string toml_text(double value);
std::string toml_text(bool value);
std::string toml_text(const std::string& value);
template <NamedEnum Enum>
std::string toml_text(Enum value) {
  return toml_text(to_string(value));
}
inline std::string toml_text(std::uint64_t value) {
  return toml_text(as_signed(value));
}
template <class T>
std::string toml_text(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + toml_text(value);
  return "[" + text + "]";
}

/// Reads what the table has; a key that is absent keeps its value.
class KeyReader {
 public:
  explicit KeyReader(TomlReader& table) : table_(table) {}

  template <class T>
  void operator()(const char* key, T& value, const char* /*meaning*/, KeyRule rule = {}) {
    if constexpr (NamedEnum<T>) {
      value = table_.word(key, value);
    } else if constexpr (std::same_as<T, bool>) {
      value = table_.boolean(key, value);
    } else if constexpr (std::integral<T>) {
      value = static_cast<T>(whole(key, static_cast<std::int64_t>(value), rule));
    } else if constexpr (std::floating_point<T>) {
      value = number(key, value, rule);
    } else if constexpr (std::same_as<T, std::string>) {
      value = table_.text(key, value);
    } else {
      read_list(key, value);
    }
  }

 private:
  void read_list(const char* key, std::vector<std::string>& values);
  void read_list(const char* key, std::vector<double>& values);
  void read_list(const char* key, std::vector<std::int64_t>& values);
  void read_list(const char* key, std::vector<std::uint64_t>& values);
  template <class T, class Parse>
  void read_items(const char* key, std::vector<T>& values, const Parse& parse) {
    const std::vector<std::string> items = table_.list(key);
    if (!table_.has(key)) return;
    values.clear();
    for (const std::string& item : items) values.push_back(parse(item));
  }
  std::int64_t whole(const char* key, std::int64_t fallback, KeyRule rule);
  std::int64_t count(const char* key, std::int64_t fallback);
  double number(const char* key, double fallback, KeyRule rule);
  TomlReader& table_;
};

/// Writes "key = value" for every key.
class KeyWriter {
 public:
  template <class T>
  void operator()(const char* key, const T& value, const char* /*meaning*/, KeyRule rule = {}) {
    if (rule.only_when_set && value == T{}) return;
    text_ += std::string(key) + " = " + toml_text(value) + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// ConfigError "WHERE: key = value must lie between ..." for a spec that did not come from a file.
class KeyChecker {
 public:
  explicit KeyChecker(std::string where) : where_(std::move(where)) {}

  template <class T>
  void operator()(const char* key, const T& value, const char* /*meaning*/, KeyRule rule = {}) {
    if constexpr (std::is_arithmetic_v<T>) {
      check(key, static_cast<double>(value), toml_text(value), rule);
    }
  }

 private:
  void check(const char* key, double value, const std::string& text, KeyRule rule) const;
  std::string where_;
};

/// A key as help shows it.
struct KeyDescription {
  std::string key, fallback, values, meaning;
};

/// Describes the keys; the values of the visited spec are the defaults.
class KeyDescriber {
 public:
  template <class T>
  void operator()(const char* key, const T& value, const char* meaning, KeyRule rule = {}) {
    keys_.push_back({key, toml_text(value), values<T>(rule), meaning});
  }
  const std::vector<KeyDescription>& keys() const { return keys_; }

 private:
  template <class T>
  static std::string values(KeyRule rule) {
    if constexpr (NamedEnum<T>) return join_names(list_names<T>());
    if constexpr (std::same_as<T, bool>) return "true, false";
    if constexpr (std::same_as<T, std::string>) return "text";
    if constexpr (std::same_as<T, std::vector<std::string>>) return "texts";
    if constexpr (std::same_as<T, std::vector<double>>) return "counts";
    if constexpr (std::is_class_v<T>) return "whole numbers";
    return range_text(rule, std::integral<T>);
  }
  static std::string join_names(const std::vector<std::string>& names);
  static std::string range_text(KeyRule rule, bool whole);
  std::vector<KeyDescription> keys_;
};

/// A table of a spec as help shows it.
struct TableDescription {
  std::string name;
  std::vector<KeyDescription> keys;
};

template <class Spec>
void read_keys(TomlReader& table, Spec& spec) {
  KeyReader reader(table);
  Spec::visit_keys(spec, reader);
}

template <class Spec>
std::string write_keys(const Spec& spec) {
  KeyWriter writer;
  Spec::visit_keys(spec, writer);
  return writer.text();
}

template <class Spec>
TableDescription describe_keys(std::string name, const Spec& defaults) {
  KeyDescriber describer;
  Spec::visit_keys(defaults, describer);
  return {std::move(name), describer.keys()};
}

}  // namespace fathom
