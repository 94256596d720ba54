#include "engine/cpu/cpu_ops.h"
#include "engine/require.h"

namespace fathom::engine::cpu {

BoundOp bind(const Activation& op, const Context& context) {
  require(!op.slopes.exists() && !op.bias.exists(), "activation: a plan for another device");
  const Tensor& y = context.tensor(op.y);
  const ActivationArgs args{
      context.operand(op.u), context.operand(op.y), {}, {}, y.cols, op.kind, false};
  return [args, rows = y.rows, &kernels = context.kernels,
          threads = context.threads](const StepScalars&) {
    parallel_ranges(threads, rows, 1, [&](std::int64_t begin, std::int64_t end) {
      kernels.activation_forward(args, begin, end);
    });
  };
}

BoundOp bind(const ActivationBackward& op, const Context& context) {
  require(!op.slopes.exists() && !op.bias.exists(), "activation: a plan for another device");
  const Tensor& dy = context.tensor(op.dy);
  const ActivationArgs args{context.operand(op.u),          {},      context.operand(op.dy),
                            context.operand(op.du),         dy.cols, op.kind,
                            op.mode == GradMode::accumulate};
  return [args, rows = dy.rows, &kernels = context.kernels,
          threads = context.threads](const StepScalars&) {
    parallel_ranges(threads, rows, 1, [&](std::int64_t begin, std::int64_t end) {
      kernels.activation_backward(args, begin, end);
    });
  };
}

}  // namespace fathom::engine::cpu
