#include "engine/cuda/cuda_ops.h"

namespace fathom::engine::cuda {
namespace {

__global__ void add_bias_kernel(Operand y, const float* bias, std::int64_t size,
                                std::int64_t width) {
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < size;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    Pack<1> value = load<1>(y, i);
    value.v[0] += bias[i % width];
    store<1>(y, i, value);
  }
}

ProductSpec forward_spec(const Linear& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  return {.m = x.rows,
          .n = context.tensor(op.weight).rows,
          .k = x.cols,
          .transpose_b = true,
          .input = x.dtype,
          .result = context.tensor(op.y).dtype};
}

ProductSpec input_gradient_spec(const LinearBackward& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  return {.m = x.rows,
          .n = x.cols,
          .k = context.tensor(op.weight).rows,
          .input = x.dtype,
          .result = context.tensor(op.dx).dtype,
          .accumulate = op.dx_mode == GradMode::accumulate};
}

/// Biases are added in the type of the result.
const void* bias_for(const Linear& op, const Context& context) {
  if (!op.bias.exists()) return nullptr;
  if (context.tensor(op.y).dtype == DType::bf16) return context.bias_copy(op.bias);
  return context.address(op.bias);
}

BoundOp bound(std::shared_ptr<Product> product, const ProductOperands& operands) {
  return [product, operands](cudaStream_t stream) { product->run(operands, stream); };
}

BoundOp bind_plain(const Linear& op, const Context& context) {
  const ProductOperands operands{context.address(op.x), context.address(op.weight),
                                 context.address(op.y)};
  const BoundOp product =
      bound(context.products.get(forward_spec(op, context), operands), operands);
  if (!op.bias.exists()) return product;
  const Tensor& y = context.tensor(op.y);
  return [product, y = context.operand(op.y), bias = context.floats(op.bias), size = y.size(),
          width = y.cols](cudaStream_t stream) {
    product(stream);
    add_bias_kernel<<<std::min(4096, blocks_for(size, 256)), 256, 0, stream>>>(y, bias, size,
                                                                               width);
    check_launch("bias");
  };
}

/// dW and db: together where cuBLAS offers it, else one after the other.
BoundOp bind_weight_gradient(const LinearBackward& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  const std::int64_t outs = context.tensor(op.weight).rows;
  ProductSpec spec{.m = outs,
                   .n = x.cols,
                   .k = x.rows,
                   .transpose_a = true,
                   .input = x.dtype,
                   .accumulate = op.d_weight_mode == GradMode::accumulate};
  ProductOperands operands{context.address(op.dy), context.address(op.x),
                           context.address(op.d_weight)};
  const bool overwrites = !spec.accumulate && op.d_bias_mode == GradMode::overwrite;
  if (op.d_weight.exists() && op.d_bias.exists() && overwrites && x.dtype == DType::bf16) {
    ProductSpec both = spec;
    ProductOperands with_bias = operands;
    both.epilogue = Epilogue::bias_gradient;
    with_bias.extra = context.address(op.d_bias);
    if (auto product = context.products.get(both, with_bias)) return bound(product, with_bias);
  }
  BoundOp weight, bias;
  if (op.d_weight.exists()) weight = bound(context.products.get(spec, operands), operands);
  if (op.d_bias.exists()) {
    bias = bind_period_sum(context, context.operand(op.dy), context.floats(op.d_bias), x.rows, outs,
                           1, 1, op.d_bias_mode);
  }
  return [weight, bias](cudaStream_t stream) {
    if (weight) weight(stream);
    if (bias) bias(stream);
  };
}

/// A product and the tanh form of GELU that follows it, in one pass.
BoundOp bind_with_activation(const Linear& linear, const Activation& activation,
                             const Context& context) {
  if (activation.u != linear.y || activation.kind != ActivationKind::gelu_tanh ||
      !linear.bias.exists() || context.tensor(linear.y).dtype != DType::bf16) {
    return {};
  }
  ProductSpec spec = forward_spec(linear, context);
  ProductOperands operands{context.address(linear.x), context.address(linear.weight),
                           context.address(activation.y), bias_for(linear, context),
                           context.address(linear.y)};
  const bool kept = operands.aux != operands.c;  // evaluation does not need z again
  spec.epilogue = kept ? Epilogue::gelu_aux_bias : Epilogue::gelu_bias;
  if (!kept) operands.aux = nullptr;
  const auto product = context.products.get(spec, operands);
  return product ? bound(product, operands) : BoundOp{};
}

BoundOp bind_with_activation_gradient(const LinearBackward& linear,
                                      const ActivationBackward& activation,
                                      const Context& context) {
  if (!linear.dx.exists() || activation.dy != linear.dx || linear.dx_mode != GradMode::overwrite ||
      activation.mode != GradMode::overwrite || activation.kind != ActivationKind::gelu_tanh ||
      context.tensor(linear.dx).dtype != DType::bf16) {
    return {};
  }
  ProductSpec spec = input_gradient_spec(linear, context);
  spec.epilogue = Epilogue::gelu_gradient;
  const ProductOperands operands{context.address(linear.dy), context.address(linear.weight),
                                 context.address(activation.du), nullptr,
                                 context.address(activation.u)};
  const auto product = context.products.get(spec, operands);
  if (!product) return {};
  return [weight = bind_weight_gradient(linear, context), product, operands](cudaStream_t stream) {
    weight(stream);
    product->run(operands, stream);
  };
}

}  // namespace

BoundOp bind(const Linear& op, const Context& context) {
  if (op.bias.exists()) {
    ProductSpec spec = forward_spec(op, context);
    spec.epilogue = Epilogue::bias;
    const ProductOperands operands{context.address(op.x), context.address(op.weight),
                                   context.address(op.y), bias_for(op, context)};
    if (auto product = context.products.get(spec, operands)) return bound(product, operands);
  }
  return bind_plain(op, context);
}

BoundOp bind(const LinearBackward& op, const Context& context) {
  const BoundOp weight = bind_weight_gradient(op, context);
  if (!op.dx.exists()) return weight;
  const ProductOperands operands{context.address(op.dy), context.address(op.weight),
                                 context.address(op.dx)};
  const auto product = context.products.get(input_gradient_spec(op, context), operands);
  return [weight, product, operands](cudaStream_t stream) {
    weight(stream);
    product->run(operands, stream);
  };
}

BoundOp bind_fused(const Op& first, const Op& second, const Context& context) {
  if (const auto* linear = std::get_if<Linear>(&first)) {
    const auto* activation = std::get_if<Activation>(&second);
    return activation ? bind_with_activation(*linear, *activation, context) : BoundOp{};
  }
  if (const auto* linear = std::get_if<LinearBackward>(&first)) {
    const auto* activation = std::get_if<ActivationBackward>(&second);
    return activation ? bind_with_activation_gradient(*linear, *activation, context) : BoundOp{};
  }
  return {};
}

}  // namespace fathom::engine::cuda
