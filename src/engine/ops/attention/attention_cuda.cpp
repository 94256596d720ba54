#include "engine/cuda/cuda_ops.h"
#include "engine/ops/attention/attention_pattern.h"
#include "engine/ops/attention/cuda/attention_kernels.h"

namespace fathom::engine::cuda {
namespace {

/// [K, F], so that neighbouring threads, which have neighbouring features, read neighbours.
const float* upload_directions(const AttentionShape& shape, const Context& context) {
  const std::vector<float> rows = feature_directions(shape);
  std::vector<float> columns;
  for (std::int64_t c = 0; c < shape.head_size; ++c) {
    for (std::int64_t m = 0; m < shape.features; ++m) {
      columns.push_back(rows[static_cast<std::size_t>(m * shape.head_size + c)]);
    }
  }
  return context.upload(columns);
}

AttentionConfig config_for(const AttentionShape& shape, TensorId qkv, const Context& context) {
  const bool bf16 = context.tensor(qkv).dtype == DType::bf16;
  AttentionConfig config = configure_attention(shape, bf16, context.gpu);
  if (shape.has_pattern()) {
    const AttentionPattern pattern(shape);
    config.visible = context.upload(pattern.words());
    config.views = context.upload(pattern.views());
  }
  if (shape.kind == AttentionKind::performer) config.directions = upload_directions(shape, context);
  context.scratch->reserve(static_cast<std::int64_t>(attention_scratch_bytes(config)));
  return config;
}

BoundOp bind_backward(const AttentionBackward& op, const ColumnSums& sums,
                      const AttentionConfig& config, const Context& context) {
  return [=, dy = context.address(op.dy), qkv = context.address(op.qkv), y = context.address(op.y),
          stats = context.floats(op.stats), d_qkv = context.address(op.d_qkv),
          scratch = context.scratch](cudaStream_t stream) {
    attention_backward(config, dy, qkv, y, stats, d_qkv, scratch->data(), stream, sums);
    check_launch("attention backward");
  };
}

}  // namespace

BoundOp bind(const Attention& op, const Context& context) {
  return [config = config_for(op.shape, op.qkv, context), qkv = context.address(op.qkv),
          y = context.address(op.y), stats = context.floats(op.stats),
          scratch = context.scratch](cudaStream_t stream) {
    attention_forward(config, qkv, y, stats, scratch->data(), stream);
    check_launch("attention");
  };
}

BoundOp bind(const AttentionBackward& op, const Context& context) {
  return bind_backward(op, {}, config_for(op.shape, op.qkv, context), context);
}

BoundOp bind(const WithBiasGradient<AttentionBackward>& op, const Context& context) {
  const AttentionConfig config = config_for(op.maker.shape, op.maker.qkv, context);
  if (!config.sums_columns()) {
    throw InternalError("attention sums no columns: this plan is for another device");
  }
  return bind_backward(op.maker, column_sums(op.bias, context), config, context);
}

}  // namespace fathom::engine::cuda
