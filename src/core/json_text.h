// JSON of files and documents: parsing with errors that name file and place, and values as all of
// Fathom writes them. Include only in .cpp files; headers use nlohmann/json_fwd.hpp.
#pragma once

#include <cmath>
#include <concepts>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/enum_names.h"

namespace fathom {

/// DataError when the text is not JSON; `origin` names it in the message.
nlohmann::json parse_json(std::string_view text, const std::string& origin);
/// The same with the keys in the order of the text.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& origin);
nlohmann::json read_json_file(const std::filesystem::path& path);

/// The document as text; bytes that are not UTF-8 are replaced. `indent` -1: on one line.
std::string json_text(const nlohmann::ordered_json& document, int indent = 2);

/// JSON has no infinity: absent and non-finite numbers become null.
nlohmann::ordered_json number_or_null(std::optional<double> value);
/// A count as a JSON integer when a double can hold it exactly.
nlohmann::ordered_json whole_number(double value);

/// A field of a struct: enums by their names, non-finite numbers as null.
template <class T>
nlohmann::ordered_json json_value(const T& value) {
  if constexpr (NamedEnum<T>) {
    return name_of(value);
  } else if constexpr (std::floating_point<T>) {
    return number_or_null(value);
  } else {
    return value;
  }
}

/// The inverse; null becomes NaN. Throws nlohmann's exceptions when the type differs.
template <class T>
void read_json_value(const nlohmann::json& json, T& value) {
  if constexpr (NamedEnum<T>) {
    value = parse_enum<T>(json.get<std::string>(), "value");
  } else if constexpr (std::floating_point<T>) {
    value = json.is_null() ? NAN : json.get<T>();
  } else {
    value = json.get<T>();
  }
}

}  // namespace fathom
