#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/device.cuh"

namespace fathom::engine::cuda {
namespace {

__global__ void add_bias_kernel(Operand y, Operand bias, std::int64_t size, std::int64_t width) {
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < size;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    Pack<1> value = load<1>(y, i);
    value.v[0] += load<1>(bias, i % width).v[0];
    store<1>(y, i, value);
  }
}

BoundOp bound(std::shared_ptr<Gemm> gemm, const GemmOperands& operands) {
  return [gemm, operands](cudaStream_t stream) { gemm->run(operands, stream); };
}

/// cuBLASLt offers db along with dW, at three times the cost of the GEMM
/// (docs/results/h200-kernels.md).
BoundOp bind_parameter_gradients(const LinearBackward& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  const std::int64_t outs = context.tensor(op.weight).rows;
  const GemmSpec spec{.m = outs,
                      .n = x.cols,
                      .k = x.rows,
                      .transpose_a = true,
                      .input = x.dtype,
                      .accumulate = op.d_weight_mode == GradMode::accumulate};
  const GemmOperands operands{context.address(op.dy), context.address(op.x),
                              context.address(op.d_weight)};
  BoundOp weight, bias;
  if (op.d_weight.exists()) weight = bound(context.gemms.get(spec, operands), operands);
  if (op.d_bias.exists()) {
    bias = bind_period_sum(context, context.operand(op.dy), context.floats(op.d_bias), x.rows, outs,
                           1, 1, op.d_bias_mode);
  }
  return [weight, bias](cudaStream_t stream) {
    if (weight) weight(stream);
    if (bias) bias(stream);
  };
}

}  // namespace

BoundOp bind(const Linear& op, const Context& context) {
  const Tensor &x = context.tensor(op.x), &y = context.tensor(op.y);
  GemmSpec spec{.m = x.rows,
                .n = y.cols,
                .k = x.cols,
                .transpose_b = true,
                .input = x.dtype,
                .result = y.dtype};
  GemmOperands operands{context.address(op.x), context.address(op.weight), context.address(op.y)};
  if (!op.bias.exists()) return bound(context.gemms.get(spec, operands), operands);
  if (context.tensor(op.bias).dtype == y.dtype) {
    GemmSpec with_bias = spec;
    GemmOperands all = operands;
    with_bias.bias = true;
    all.bias = context.address(op.bias);
    if (auto gemm = context.gemms.get(with_bias, all)) return bound(gemm, all);
  }
  return [gemm = context.gemms.get(spec, operands), operands, y = context.operand(op.y),
          bias = context.operand(op.bias), size = y.size(), width = y.cols,
          blocks = blocks_for(y.size(), 256, context.gpu, 32)](cudaStream_t stream) {
    gemm->run(operands, stream);
    add_bias_kernel<<<blocks, 256, 0, stream>>>(y, bias, size, width);
    check_launch("bias");
  };
}

BoundOp bind(const LinearBackward& op, const Context& context) {
  const BoundOp parameters = bind_parameter_gradients(op, context);
  if (!op.dx.exists()) return parameters;
  const Tensor& x = context.tensor(op.x);
  const GemmSpec spec{.m = x.rows,
                      .n = x.cols,
                      .k = context.tensor(op.weight).rows,
                      .input = x.dtype,
                      .result = context.tensor(op.dx).dtype,
                      .accumulate = op.dx_mode == GradMode::accumulate};
  const GemmOperands operands{context.address(op.dy), context.address(op.weight),
                              context.address(op.dx)};
  const auto gemm = context.gemms.get(spec, operands);
  return [parameters, gemm, operands](cudaStream_t stream) {
    parameters(stream);
    gemm->run(operands, stream);
  };
}

}  // namespace fathom::engine::cuda
