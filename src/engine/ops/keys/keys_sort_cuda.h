// KeyMap::sort on the GPU; keys_cuda.cu binds the other maps.
#pragma once

#include "engine/cuda/cuda_ops.h"

namespace fathom::engine::cuda {

BoundOp bind_sort(const MapKeys& op, const Context& context);
BoundOp bind_sort(const MapKeysBackward& op, const Context& context);

}  // namespace fathom::engine::cuda
