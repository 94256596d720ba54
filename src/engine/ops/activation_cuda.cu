#include "engine/cuda/cuda_ops.h"

namespace fathom::engine::cuda {
namespace {

struct Value {
  float y, slope;
};

template <ActivationKind kKind>
__device__ inline Value evaluate(float u) {
  if constexpr (kKind == ActivationKind::relu) {
    return {fmaxf(u, 0.0f), u > 0 ? 1.0f : 0.0f};
  } else if constexpr (kKind == ActivationKind::gelu) {
    const float phi = 0.5f * (1 + erff(u * 0.70710678118654752f));
    return {u * phi, phi + u * 0.39894228040143268f * expf(-0.5f * u * u)};
  } else if constexpr (kKind == ActivationKind::gelu_tanh) {
    constexpr float k = 0.79788456080286536f;
    const float t = tanhf(k * (u + 0.044715f * u * u * u));
    return {0.5f * u * (1 + t),
            0.5f * (1 + t) + 0.5f * u * (1 - t * t) * k * (1 + 3 * 0.044715f * u * u)};
  } else {
    const float s = 1 / (1 + expf(-u));
    return {u * s, s * (1 + u * (1 - s))};
  }
}

/// One pack of y; `at` is the place of its gate (or of u itself) and `width` y's width.
template <ActivationKind kKind, int V>
__global__ void forward_kernel(Operand u, Operand y, std::int64_t packs, std::int64_t width) {
  constexpr bool kGated = kKind == ActivationKind::swiglu;
  for (std::int64_t p = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; p < packs;
       p += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t i = p * V, at = kGated ? i / width * 2 * width + i % width : i;
    Pack<V> value = load<V>(u, at);
    Pack<V> other;
    if constexpr (kGated) other = load<V>(u, at + width);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      value.v[j] = evaluate<kKind>(value.v[j]).y * (kGated ? other.v[j] : 1.0f);
    }
    store<V>(y, i, value);
  }
}

template <ActivationKind kKind, int V>
__global__ void backward_kernel(Operand dy, Operand u, Operand du, std::int64_t packs,
                                std::int64_t width, bool accumulate) {
  constexpr bool kGated = kKind == ActivationKind::swiglu;
  for (std::int64_t p = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; p < packs;
       p += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t i = p * V, at = kGated ? i / width * 2 * width + i % width : i;
    const Pack<V> d = load<V>(dy, i), first = load<V>(u, at);
    Pack<V> d_first, d_other, other;
    if constexpr (kGated) other = load<V>(u, at + width);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const Value value = evaluate<kKind>(first.v[j]);
      d_first.v[j] = d.v[j] * value.slope * (kGated ? other.v[j] : 1.0f);
      if constexpr (kGated) d_other.v[j] = d.v[j] * value.y;
    }
    put<V>(du, at, d_first, accumulate);
    if constexpr (kGated) put<V>(du, at + width, d_other, accumulate);
  }
}

template <class Body>
void with_kind(ActivationKind kind, const Body& body) {
  switch (kind) {
    case ActivationKind::relu:
      return body.template operator()<ActivationKind::relu>();
    case ActivationKind::gelu:
      return body.template operator()<ActivationKind::gelu>();
    case ActivationKind::gelu_tanh:
      return body.template operator()<ActivationKind::gelu_tanh>();
    case ActivationKind::swiglu:
      return body.template operator()<ActivationKind::swiglu>();
  }
}

template <class Body>
void with_pack(std::int64_t width, const Body& body) {
  if (width % 8 == 0) return body.template operator()<8>();
  body.template operator()<1>();
}

int grid_of(std::int64_t packs) {
  return std::min(132 * 32, blocks_for(packs, 256));
}

}  // namespace

BoundOp bind(const Activation& op, const Context& context) {
  const Tensor& y = context.tensor(op.y);
  return [u = context.operand(op.u), out = context.operand(op.y), kind = op.kind, size = y.size(),
          width = y.cols](cudaStream_t stream) {
    with_kind(kind, [&]<ActivationKind kKind>() {
      with_pack(width, [&]<int V>() {
        forward_kernel<kKind, V><<<grid_of(size / V), 256, 0, stream>>>(u, out, size / V, width);
      });
    });
    check_launch("activation");
  };
}

BoundOp bind(const ActivationBackward& op, const Context& context) {
  const Tensor& dy = context.tensor(op.dy);
  return [d = context.operand(op.dy), u = context.operand(op.u), du = context.operand(op.du),
          kind = op.kind, size = dy.size(), width = dy.cols,
          accumulate = op.mode == GradMode::accumulate](cudaStream_t stream) {
    with_kind(kind, [&]<ActivationKind kKind>() {
      with_pack(width, [&]<int V>() {
        backward_kernel<kKind, V>
            <<<grid_of(size / V), 256, 0, stream>>>(d, u, du, size / V, width, accumulate);
      });
    });
    check_launch("activation backward");
  };
}

}  // namespace fathom::engine::cuda
