#include "engine/ops/attention/cuda/hopper_maps.h"

#include "engine/cuda/hopper/tensor_map.h"

namespace fathom::engine::cuda::flash {
namespace {

/// Dimensions, fastest first: columns of a head, heads, rows of a sequence, sequences.
CUtensorMap map_heads(const bf16* from, std::int64_t stride, int heads, const FlashArgs& args,
                      int columns, int rows = kBoxRows) {
  const auto size = [](std::int64_t n) { return static_cast<cuuint64_t>(n); };
  return hopper::make_tensor_map(
      from, {.rank = 4,
             .sizes = {size(args.head_size), size(heads), size(args.context), size(args.batch)},
             .strides = {size(args.head_size) * 2, size(stride) * 2,
                         size(stride) * size(args.context) * 2},
             .box = {static_cast<cuuint32_t>(columns), 1, static_cast<cuuint32_t>(rows), 1},
             .swizzle = columns == 64   ? CU_TENSOR_MAP_SWIZZLE_128B
                        : columns == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
                                        : CU_TENSOR_MAP_SWIZZLE_32B,
             .promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B});
}

}  // namespace

ForwardMaps make_forward_maps(const FlashArgs& args, int columns) {
  return {map_heads(args.q, args.qk_stride, args.heads, args, columns),
          map_heads(args.k, args.qk_stride, args.key_heads, args, columns),
          map_heads(args.v, args.v_stride, args.key_heads, args, columns)};
}

BackwardMaps make_backward_maps(const FlashArgs& args, int columns) {
  return {make_forward_maps(args, columns),
          map_heads(args.dy, args.y_stride, args.heads, args, columns),
          map_heads(args.dq, args.d_stride, args.heads, args, columns, 16),
          map_heads(args.dk, args.d_stride, args.key_heads, args, columns, 16),
          map_heads(args.dv, args.d_stride, args.key_heads, args, columns, 16)};
}

}  // namespace fathom::engine::cuda::flash
