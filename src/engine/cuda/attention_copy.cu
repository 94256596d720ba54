// The maps that describe q, k, v and their gradients to the copy engine.
#include "engine/cuda/attention_copy.cuh"

namespace fathom::engine::cuda::flash {
namespace {

/// Dimensions, fastest first: columns of a head, heads, rows of a sequence, sequences.
bool describe_heads(CUtensorMap& map, const bf16* from, std::int64_t stride, int heads,
                    const FlashArgs& args, int columns, int rows = kCopyRows) {
  const TensorMapEncoder encode = tensor_map_encoder();
  if (encode == nullptr) return false;
  const auto size = [](std::int64_t n) { return static_cast<cuuint64_t>(n); };
  const cuuint64_t dims[] = {size(args.head_size), size(heads), size(args.context),
                             size(args.batch)};
  const cuuint64_t strides[] = {size(args.head_size) * 2, size(stride) * 2,
                                size(stride) * size(args.context) * 2};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(columns), 1, static_cast<cuuint32_t>(rows), 1};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  const CUtensorMapSwizzle swizzle = columns == 64   ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : columns == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                     : CU_TENSOR_MAP_SWIZZLE_32B;
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<bf16*>(from), dims, strides,
                box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace

bool make_copy_maps(CopyMaps& maps, const FlashArgs& args, int columns) {
  return describe_heads(maps.q, args.q, args.qk_stride, args.heads, args, columns) &&
         describe_heads(maps.k, args.k, args.qk_stride, args.key_heads, args, columns) &&
         describe_heads(maps.v, args.v, args.v_stride, args.key_heads, args, columns);
}

bool make_adjoint_maps(AdjointMaps& maps, const FlashArgs& args, int columns) {
  return make_copy_maps(maps, args, columns) &&
         describe_heads(maps.dy, args.dy, args.y_stride, args.heads, args, columns) &&
         describe_heads(maps.dq, args.dq, args.d_stride, args.heads, args, columns, 16) &&
         describe_heads(maps.dk, args.dk, args.d_stride, args.key_heads, args, columns, 16) &&
         describe_heads(maps.dv, args.dv, args.d_stride, args.key_heads, args, columns, 16);
}

}  // namespace fathom::engine::cuda::flash
