// Where tensors may begin in memory.
#pragma once

#include "engine/plan/arena_layout.h"

namespace fathom::engine {

/// Bytes of a tensor with the padding before the next.
constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

}  // namespace fathom::engine
