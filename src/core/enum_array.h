// An array with one element for every value of an enum, indexed by the enum itself.
#pragma once

#include <array>
#include <cstddef>

#include "core/enum_names.h"

namespace fathom {

template <NamedEnum Enum, class T>
class EnumArray {
 public:
  constexpr T& operator[](Enum place) { return values_[static_cast<std::size_t>(place)]; }
  constexpr const T& operator[](Enum place) const {
    return values_[static_cast<std::size_t>(place)];
  }

  static constexpr std::size_t size() { return kEnumCount<Enum>; }
  constexpr auto begin() { return values_.begin(); }
  constexpr auto end() { return values_.end(); }
  constexpr auto begin() const { return values_.begin(); }
  constexpr auto end() const { return values_.end(); }

 private:
  std::array<T, kEnumCount<Enum>> values_{};
};

}  // namespace fathom
