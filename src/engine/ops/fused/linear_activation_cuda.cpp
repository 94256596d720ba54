#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/gemm/gemm_activation.h"
#include "engine/cuda/memory.h"

namespace fathom::engine::cuda {
namespace {

/// The fastest variant of the GEMM, by timing.
std::shared_ptr<GemmActivation> fastest(const GemmActivationSpec& spec,
                                        const GemmActivationOperands& operands,
                                        const Context& context) {
  std::vector<std::string> names;
  std::vector<std::shared_ptr<GemmActivation>> gemms;
  for (const GemmActivationVariant& variant : GemmActivation::variants(spec, context.gpu)) {
    names.push_back(variant.name());
    gemms.push_back(std::make_shared<GemmActivation>(spec, operands, variant, context.gpu));
  }
  if (gemms.empty()) throw InternalError(spec.name() + ": this plan is for another device");
  Block partial;  // the scratch is not allocated yet
  return gemms[context.gemms.pick(spec.name(), names, [&](std::size_t i, cudaStream_t stream) {
    const std::int64_t bytes = gemms[i]->parts() * spec.n * 4;
    if (spec.backward && partial.bytes() < bytes) partial = Block(bytes);
    gemms[i]->run(reinterpret_cast<float*>(partial.data()), stream);
  })];
}

}  // namespace

BoundOp bind(const LinearThenActivation& op, const Context& context) {
  const Tensor &x = context.tensor(op.linear.x), &u = context.tensor(op.linear.y);
  const GemmActivationSpec spec{x.rows, u.cols, x.cols, op.activation.kind, false};
  const GemmActivationOperands operands{
      context.address(op.linear.x), context.address(op.linear.weight),
      context.floats(op.activation.bias), context.address(op.activation.slopes),
      context.address(op.activation.y)};
  return [gemm = fastest(spec, operands, context)](cudaStream_t stream) {
    gemm->run(nullptr, stream);
  };
}

BoundOp bind(const LinearBackwardThenActivation& op, const Context& context) {
  const Tensor& x = context.tensor(op.linear.x);
  const GemmActivationSpec spec{x.rows, x.cols, context.tensor(op.linear.weight).rows,
                                op.activation.kind, true};
  const GemmActivationOperands operands{
      context.address(op.linear.dy), context.address(op.linear.weight), nullptr,
      context.address(op.activation.slopes), context.address(op.activation.du)};
  const auto gemm = fastest(spec, operands, context);
  context.scratch->reserve(gemm->parts() * spec.n * 4);
  return [gemm, width = spec.n, scratch = context.scratch,
          sums = column_sums(op.bias, context)](cudaStream_t stream) {
    auto* partial = static_cast<float*>(scratch->data());
    gemm->run(partial, stream);
    if (sums.to != nullptr) reduce_parts(partial, gemm->parts(), width, sums, 1, stream);
  };
}

}  // namespace fathom::engine::cuda
