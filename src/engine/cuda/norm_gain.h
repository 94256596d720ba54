// The gain of a norm for its kernels, which always expect one.
#pragma once

#include "engine/cuda/cuda_ops.h"

namespace fathom::engine::cuda {

/// Ones where a norm has no gain.
inline const float* gain_of(TensorId gain, std::int64_t width, const Context& context) {
  if (gain.exists()) return context.floats(gain);
  return context.upload(std::vector<float>(static_cast<std::size_t>(width), 1.0f));
}

}  // namespace fathom::engine::cuda
