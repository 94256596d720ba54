#include "engine/cuda/attention_kernels.h"
#include "engine/cuda/cuda_ops.h"

namespace fathom::engine::cuda {

BoundOp bind(const Attention& op, const Context& context) {
  const bool bf16 = context.tensor(op.qkv).dtype == DType::bf16;
  context.scratch->reserve(static_cast<std::int64_t>(attention_scratch_bytes(op.shape, bf16)));
  return [=, shape = op.shape, qkv = context.address(op.qkv), y = context.address(op.y),
          stats = context.floats(op.stats), scratch = context.scratch](cudaStream_t stream) {
    attention_forward(shape, qkv, y, stats, bf16, scratch->data(), stream);
    check_launch("attention");
  };
}

namespace {

BoundOp bind_backward(const AttentionBackward& op, const ColumnSums& sums, const Context& context) {
  const bool bf16 = context.tensor(op.qkv).dtype == DType::bf16;
  context.scratch->reserve(static_cast<std::int64_t>(attention_scratch_bytes(op.shape, bf16)));
  return [=, shape = op.shape, dy = context.address(op.dy), qkv = context.address(op.qkv),
          y = context.address(op.y), stats = context.floats(op.stats),
          d_qkv = context.address(op.d_qkv), scratch = context.scratch](cudaStream_t stream) {
    attention_backward(shape, dy, qkv, y, stats, d_qkv, bf16, scratch->data(), stream, sums);
    check_launch("attention backward");
  };
}

}  // namespace

BoundOp bind(const AttentionBackward& op, const Context& context) {
  return bind_backward(op, {}, context);
}

BoundOp bind_with_sums(const AttentionBackward& op, float* bias_sums, bool accumulate,
                       const Context& context) {
  const bool bf16 = context.tensor(op.qkv).dtype == DType::bf16;
  if (!serves_column_sums(op.shape, bf16)) return {};
  return bind_backward(op, {bias_sums, accumulate}, context);
}

}  // namespace fathom::engine::cuda
