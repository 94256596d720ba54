// Counts as doubles, as sizes and as signed numbers, by name: conversions that lose nothing for any
// count Fathom meets. What could lose something still needs a static_cast.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace fathom {

/// Exact up to 2^53.
constexpr double as_double(std::integral auto count) {
  return static_cast<double>(count);
}

/// A count or index as containers want it.
constexpr std::size_t as_size(std::integral auto count) {
  assert(count >= 0);
  return static_cast<std::size_t>(count);
}

/// A size or unsigned count for arithmetic that may go below zero; below 2^63.
constexpr std::int64_t as_signed(std::unsigned_integral auto count) {
  return static_cast<std::int64_t>(count);
}

}  // namespace fathom
