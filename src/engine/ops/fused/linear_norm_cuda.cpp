#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/gemm/gemm_norm.h"
#include "engine/cuda/memory.h"

namespace fathom::engine::cuda {
namespace {

/// The fastest variant of the GEMM, by timing; remembered from when the fusion pass asked whether
/// it pays (fusion_probe.h).
std::shared_ptr<GemmNorm> fastest(const LinearNormShape& shape, const GemmNormOperands& operands,
                                  const Context& context) {
  std::vector<std::string> names;
  std::vector<std::shared_ptr<GemmNorm>> gemms;
  for (const GemmNormVariant& variant : GemmNorm::variants(shape, context.gpu)) {
    names.push_back(variant.name());
    gemms.push_back(std::make_shared<GemmNorm>(shape, operands, variant, context.gpu));
  }
  if (gemms.empty()) throw InternalError(key_of(shape) + ": this plan is for another device");
  Block partial;  // the memory shared with side work is not allocated yet
  return gemms[context.gemms.pick(key_of(shape), names, [&](std::size_t i, cudaStream_t stream) {
    const std::int64_t bytes = std::int64_t{gemms[i]->parts()} * gemms[i]->sums() * shape.width * 4;
    if (partial.bytes() < bytes) partial = Block(bytes);
    gemms[i]->run(reinterpret_cast<float*>(partial.data()), stream);
  })];
}

}  // namespace

BoundOp bind(const LinearThenNorm& op, const Context& context) {
  const Tensor& a = context.tensor(op.linear.x);
  const Norm& norm = op.norm;
  const LinearNormShape shape{.rows = a.rows,
                              .width = context.tensor(norm.x).cols,
                              .depth = a.cols,
                              .rms = norm.kind == NormKind::rms};
  const GemmNormOperands operands{.a = context.address(op.linear.x),
                                  .b = context.address(op.linear.weight),
                                  .gain = context.floats(norm.gain),
                                  .stats = context.floats(norm.stats),
                                  .r = context.floats(norm.r),
                                  .stream_scale = norm.stream_scale,
                                  .branch_scale = norm.branch_scale,
                                  .x = context.floats(norm.x),
                                  .shift = context.floats(norm.bias),
                                  .bias = context.floats(op.linear.bias),
                                  .y = context.address(norm.y),
                                  .epsilon = norm.epsilon};
  return [gemm = fastest(shape, operands, context)](cudaStream_t stream) {
    gemm->run(nullptr, stream);
  };
}

BoundOp bind(const LinearBackwardThenNorm& op, const Context& context) {
  const NormBackward& norm = op.norm;
  const Tensor& r = context.tensor(norm.r);
  const LinearNormShape shape{.rows = r.rows,
                              .width = r.cols,
                              .depth = context.tensor(op.linear.weight).rows,
                              .backward = true,
                              .rms = norm.kind == NormKind::rms,
                              .branch_sums = op.bias.d_bias.exists(),
                              .branch = norm.d_branch.exists()};
  const GemmNormOperands operands{.a = context.address(op.linear.dy),
                                  .b = context.address(op.linear.weight),
                                  .gain = context.floats(norm.gain),
                                  .stats = context.floats(norm.stats),
                                  .r = context.floats(norm.r),
                                  .stream_scale = norm.stream_scale,
                                  .branch_scale = norm.branch_scale,
                                  .incoming = context.address(norm.incoming),
                                  .dx = context.address(norm.dx),
                                  .d_branch = context.address(norm.d_branch)};
  const NormSums sums{{context.floats(norm.d_gain), norm.d_gain_mode == GradMode::accumulate},
                      {context.floats(norm.d_bias), norm.d_bias_mode == GradMode::accumulate},
                      column_sums(op.bias, context)};
  const auto gemm = fastest(shape, operands, context);
  const auto partial = reduce_beside(sums, gemm->parts(), gemm->sums(), shape.width, context);
  return [=](cudaStream_t stream) { gemm->run(static_cast<float*>(partial->data()), stream); };
}

}  // namespace fathom::engine::cuda
