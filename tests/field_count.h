// How many fields an aggregate has, to compare a struct with the list of its fields.
#pragma once

#include <cstddef>
#include <utility>

namespace fathom {

struct AnyValue {
  template <class T>
  operator T() const;
};

template <class T, std::size_t... I>
consteval bool takes_values(std::index_sequence<I...>) {
  return requires {
    T{((void)I, AnyValue{})...};
  };
}

/// The most values that initialise a T. T has at least one field and no base.
template <class T, std::size_t N = 1>
consteval std::size_t field_count() {
  if constexpr (takes_values<T>(std::make_index_sequence<N + 1>{})) {
    return field_count<T, N + 1>();
  } else {
    return N;
  }
}

}  // namespace fathom
