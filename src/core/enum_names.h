// One table of names per enum. Writing, parsing, lists for help and error messages all read it.
//
//   enum class Colour : std::uint8_t { red, green };
//   constexpr auto enum_names(Colour) { return std::array{"red", "green"}; }
//
// The table is declared next to the enum, in its namespace, in the order of the enumerators, which
// count from 0. A table that is too short or too long for its enum does not compile.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fathom {

template <class Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires(Enum value) {
  enum_names(value);
};

namespace detail {

/// Compilers spell a value that no enumerator has as a cast: "Value = (fathom::Colour)2".
template <auto Value>
consteval bool is_enumerator() {
  return std::string_view(__PRETTY_FUNCTION__).find("Value = (") == std::string_view::npos;
}

template <NamedEnum Enum>
consteval auto checked_names() {
  constexpr auto names = enum_names(Enum{});
  static_assert(is_enumerator<static_cast<Enum>(names.size() - 1)>(), "more names than values");
  static_assert(!is_enumerator<static_cast<Enum>(names.size())>(), "a value has no name");
  return names;
}

[[noreturn]] void refuse_name(std::string_view name, std::string_view what,
                              const std::vector<std::string>& known);

}  // namespace detail

template <NamedEnum Enum>
inline constexpr auto kEnumNames = detail::checked_names<Enum>();

template <NamedEnum Enum>
inline constexpr std::size_t kEnumCount = kEnumNames<Enum>.size();

/// Every value, in order.
template <NamedEnum Enum>
inline constexpr auto kEnumValues = [] {
  std::array<Enum, kEnumCount<Enum>> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Enum>(i);
  return values;
}();

/// For twins that must agree, such as an op's enum and the one its kernels know.
template <class A, class B>
constexpr bool same_place(A a, B b) {
  return static_cast<int>(a) == static_cast<int>(b);
}

template <NamedEnum Enum>
constexpr const char* name_of(Enum value) {
  return kEnumNames<Enum>.at(static_cast<std::size_t>(value));
}

template <NamedEnum Enum>
std::string to_string(Enum value) {
  return name_of(value);
}

/// The value of that name, if there is one.
template <NamedEnum Enum>
constexpr std::optional<Enum> find_enum(std::string_view name) {
  for (const Enum value : kEnumValues<Enum>) {
    if (name == name_of(value)) return value;
  }
  return std::nullopt;
}

/// The names as a list, for options and suggestions.
template <NamedEnum Enum>
std::vector<std::string> list_names() {
  return {kEnumNames<Enum>.begin(), kEnumNames<Enum>.end()};
}

/// ConfigError with the nearest name and all of them; `what` says what is being named.
template <NamedEnum Enum>
Enum parse_enum(std::string_view name, std::string_view what) {
  if (const auto found = find_enum<Enum>(name)) return *found;
  detail::refuse_name(name, what, list_names<Enum>());
}

}  // namespace fathom
