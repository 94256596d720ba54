#include "engine/cpu/cpu_ops.h"

namespace fathom::engine::cpu {

BoundOp bind(const Linear& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  const auto gemm = context.matmul({.m = x.rows,
                                    .n = context.tensor(op.weight).rows,
                                    .k = x.cols,
                                    .transpose_b = true,
                                    .input = x.dtype,
                                    .result = context.tensor(op.y).dtype,
                                    .bias = op.bias.exists()});
  return [gemm, stream = context.stream, a = context.address(op.x), b = context.address(op.weight),
          c = context.address(op.y), bias = context.floats(op.bias)](const StepScalars&) {
    gemm->run(*stream, a, b, c, bias);
  };
}

BoundOp bind(const LinearBackward& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  const std::int64_t outs = context.tensor(op.weight).rows;
  std::shared_ptr<Matmul> input, weight;
  BoundOp bias;
  if (op.dx.exists()) {
    input = context.matmul({.m = x.rows,
                            .n = x.cols,
                            .k = outs,
                            .input = x.dtype,
                            .result = context.tensor(op.dx).dtype,
                            .accumulate = op.dx_mode == GradMode::accumulate});
  }
  if (op.d_weight.exists()) {
    weight = context.matmul({.m = outs,
                             .n = x.cols,
                             .k = x.rows,
                             .transpose_a = true,
                             .input = x.dtype,
                             .accumulate = op.d_weight_mode == GradMode::accumulate});
  }
  if (op.d_bias.exists()) {
    bias = bind_period_sum(context, context.operand(op.dy), context.floats(op.d_bias), x.rows, outs,
                           1, 1, op.d_bias_mode);
  }
  return [input, weight, bias, stream = context.stream, dy = context.address(op.dy),
          x = context.address(op.x), w = context.address(op.weight), dx = context.address(op.dx),
          dw = context.address(op.d_weight)](const StepScalars& scalars) {
    if (weight) weight->run(*stream, dy, x, dw);
    if (input) input->run(*stream, dy, w, dx);
    if (bias) bias(scalars);
  };
}

}  // namespace fathom::engine::cpu
