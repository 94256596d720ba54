// Values of a JSON file that Fathom did not write, or that was edited since: errors in them are
// reported in plain words with file, line and key. Include only in .cpp files.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fathom {

/// The message of nlohmann's exception, without its tag: 'the key "a" is missing'.
std::string json_problem(const nlohmann::json::exception& error);

/// The line, from 1 on, where the value at a path as of JsonReader begins; 0 when there is none.
/// The text must be JSON.
std::size_t json_line_of(std::string_view text, std::string_view path);

/// A whole number that T can hold, also written as 320.0; else nlohmann's type_error, whatever the
/// processor would make of it. (nlohmann's own get casts any number.)
std::int64_t json_whole(const nlohmann::json& json, double least, double most);
template <std::integral T>
T json_whole(const nlohmann::json& json) {
  using Limits = std::numeric_limits<T>;
  if (json.is_number_unsigned() && std::in_range<T>(json.get<std::uint64_t>())) {
    return static_cast<T>(json.get<std::uint64_t>());
  }
  return static_cast<T>(
      json_whole(json, static_cast<double>(Limits::min()), static_cast<double>(Limits::max())));
}

class JsonReader {
 public:
  /// `text` is what `value` was parsed from and gives the line of an error; empty where `origin`
  /// gives it. Both must outlive the reader.
  JsonReader(const nlohmann::json& value, std::string_view text, std::string origin);

  // The value itself; DataError when it is of another type.
  double number() const;
  std::size_t count() const;
  bool boolean() const;
  std::string text() const;
  std::vector<JsonReader> items() const;

  /// A value of an object, which must be there; `find` treats absent and null as nothing.
  JsonReader at(const std::string& key) const;
  std::optional<JsonReader> find(const std::string& key) const;
  /// An item of a list.
  JsonReader at(std::size_t index) const;

  const nlohmann::json& value() const { return *value_; }
  /// A DataError at this place: "law.json:3: tokens.count must be a number, but is a string".
  [[noreturn]] void fail(std::string_view what) const;

 private:
  [[noreturn]] void refuse(const char* expected) const;

  const nlohmann::json* value_;
  std::string_view text_;
  std::string origin_;
  std::string path_;  // "joint.replicates[3]"
};

}  // namespace fathom
