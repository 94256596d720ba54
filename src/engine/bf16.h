// bf16: the upper half of an f32. Rounding is to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace fathom::engine {

inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float from_bf16(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

}  // namespace fathom::engine
