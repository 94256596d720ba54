// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011, "Parallel random numbers:
// as easy as 1, 2, 3").
//
// The value at (seed, stream, index) is a pure function, so any thread may draw any part of a
// sequence in any order and a resumed run continues with the same numbers.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace fathom {

/// One Philox block: 128 random bits for a 128-bit counter and a 64-bit key.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = 0xD2511F53ull * counter[0];
    const std::uint64_t second = 0xCD9E8D57ull * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// A sequence of 64-bit values addressed by index.
class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  constexpr std::uint64_t bits(std::uint64_t index) const {
    const auto block = philox(
        {static_cast<std::uint32_t>(index / 2), static_cast<std::uint32_t>((index / 2) >> 32),
         static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
        {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    const std::size_t half = (index % 2) * 2;
    return block[half] | (static_cast<std::uint64_t>(block[half + 1]) << 32);
  }

  /// Uniform in [0, 1) with 53 random bits.
  constexpr double uniform(std::uint64_t index) const {
    return static_cast<double>(bits(index) >> 11) * 0x1.0p-53;
  }

  /// Uniform in [0, bound); the bias is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t index, std::uint64_t bound) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(bits(index)) * bound) >> 64);
  }

  /// Normal with mean 0 and deviation 1 (Box and Muller); takes the values 2 index and
  /// 2 index + 1.
  double normal(std::uint64_t index) const {
    const double radius = std::sqrt(-2 * std::log(1 - uniform(2 * index)));
    return radius * std::cos(2 * std::numbers::pi * uniform(2 * index + 1));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace fathom
