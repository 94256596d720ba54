// How many blocks a kernel is launched with.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/cuda/gpu.h"

namespace fathom::engine::cuda {

inline int blocks_for(std::int64_t items, int per_block) {
  return static_cast<int>((items + per_block - 1) / per_block);
}

/// For kernels with grid-stride loops: enough blocks for all items, but no more than
/// `per_multiprocessor` for each multiprocessor.
inline int blocks_for(std::int64_t items, int per_block, const Gpu& gpu, int per_multiprocessor) {
  return std::min(gpu.multiprocessors * per_multiprocessor, blocks_for(items, per_block));
}

}  // namespace fathom::engine::cuda
