// Tensor maps of q, k, v and their gradients: [batch][context][heads][head size], loaded in boxes
// of 64 rows of a head. TMA leaves them in the swizzled layout of warp_mma.cuh and fills what lies
// beyond the head or the sequence with zeros.
#pragma once

#include <cuda.h>

#include "engine/ops/attention/cuda/flash_args.h"

namespace fathom::engine::cuda::flash {

constexpr int kBoxRows = 64;

struct ForwardMaps {
  CUtensorMap q, k, v;
};
/// dq, dk and dv in boxes of 16 rows.
struct BackwardMaps : ForwardMaps {
  CUtensorMap dy, dq, dk, dv;
};

/// For boxes of `columns` columns.
ForwardMaps make_forward_maps(const FlashArgs& args, int columns);
BackwardMaps make_backward_maps(const FlashArgs& args, int columns);

}  // namespace fathom::engine::cuda::flash
