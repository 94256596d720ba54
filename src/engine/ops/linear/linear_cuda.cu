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

/// cuBLAS offers db beside dW, at three times the price of the product (bench/cuda_products.cu).
BoundOp bind_weight_gradient(const LinearBackward& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  const std::int64_t outs = context.tensor(op.weight).rows;
  const ProductSpec spec{.m = outs,
                         .n = x.cols,
                         .k = x.rows,
                         .transpose_a = true,
                         .input = x.dtype,
                         .accumulate = op.d_weight_mode == GradMode::accumulate};
  const ProductOperands operands{context.address(op.dy), context.address(op.x),
                                 context.address(op.d_weight)};
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

}  // namespace

BoundOp bind(const Linear& op, const Context& context) {
  if (op.bias.exists() && context.late_bias(op.y) == op.bias) {
    Linear bare = op;
    bare.bias = {};
    return bind_plain(bare, context);
  }
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

BoundOp bind_with_bias_gradient(const Op& maker, const LinearBackward& linear,
                                const Context& context) {
  if (!linear.d_bias.exists()) return {};
  float* sums = context.floats(linear.d_bias);
  const bool accumulate = linear.d_bias_mode == GradMode::accumulate;
  if (const auto* activation = std::get_if<ActivationBackward>(&maker)) {
    if (activation->du != linear.dy || activation->mode != GradMode::overwrite) return {};
    return bind_with_sums(*activation, sums, accumulate, context);
  }
  if (const auto* norm = std::get_if<NormBackward>(&maker)) {
    if (!makes_bias_gradient(*norm, linear)) return {};
    return bind_with_sums(*norm, sums, accumulate, context);
  }
  if (const auto* attention = std::get_if<AttentionBackward>(&maker)) {
    if (attention->d_qkv != linear.dy) return {};
    return bind_with_sums(*attention, sums, accumulate, context);
  }
  return {};
}

}  // namespace fathom::engine::cuda
