// The mask of dropout.h as a pure function of the element's index.
#pragma once

#include "core/random.h"
#include "engine/ops/dropout/dropout.h"

namespace fathom::engine {

/// The words of elements 4 block .. 4 block + 3.
constexpr std::array<std::uint32_t, 4> dropout_words(const DropoutMask& mask, std::uint64_t draw,
                                                     std::int64_t block) {
  const auto counter = static_cast<std::uint64_t>(block);
  return philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                 static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32)},
                {mask.seed, mask.stream});
}

/// keep(i) / (1 - p).
inline float dropout_factor(const DropoutMask& mask, std::uint64_t draw, std::int64_t index) {
  const auto block = dropout_words(mask, draw, index / 4);
  const double threshold = static_cast<double>(mask.probability) * 4294967296.0;
  const bool keep = static_cast<double>(block[static_cast<std::size_t>(index % 4)]) >= threshold;
  return keep ? 1.0f / (1.0f - mask.probability) : 0.0f;
}

}  // namespace fathom::engine
