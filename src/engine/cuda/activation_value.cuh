// Activations and their slopes at one point, as kernels use them; the formulas are in
// ops/activation/activation.h.
#pragma once

#include "engine/ops/activation/activation.h"

namespace fathom::engine::cuda {

/// The hardware's tanh is accurate to 2^-11: enough for results in bf16.
template <bool kQuick>
__device__ inline float hyperbolic_tangent(float x) {
  if constexpr (!kQuick) return tanhf(x);
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

struct Value {
  float y, slope;
};

/// The code of a slope in a byte (ops/activation/activation.h), before rounding.
__device__ inline float encoded_slope(float slope) {
  return fmaf(slope, kSlopeSteps, kSlopeZero);
}
__device__ inline float decoded_slope(float code) {
  return (code - kSlopeZero) * (1 / kSlopeSteps);
}

template <ActivationKind kKind, bool kQuick>
__device__ inline Value evaluate(float u) {
  if constexpr (kKind == ActivationKind::relu) {
    return {fmaxf(u, 0.0f), u > 0 ? 1.0f : 0.0f};
  } else if constexpr (kKind == ActivationKind::gelu) {
    const float phi = 0.5f * (1 + erff(u * 0.70710678118654752f));
    return {u * phi, phi + u * 0.39894228040143268f * __expf(-0.5f * u * u)};
  } else if constexpr (kKind == ActivationKind::gelu_tanh) {
    // t = tanh(k (u + c u^3)),  y = u/2 (1 + t),  y' = 1/2 + (t + u (1 - t^2) k (1 + 3 c u^2)) / 2
    constexpr float k = 0.79788456080286536f, kc = k * 0.044715f;
    const float square = u * u;
    const float t = hyperbolic_tangent<kQuick>(u * fmaf(kc, square, k));
    const float half = 0.5f * u, steep = u * fmaf(3 * kc, square, k);
    return {fmaf(half, t, half), fmaf(0.5f, fmaf(steep, fmaf(-t, t, 1.0f), t), 0.5f)};
  } else {
    const float s = kQuick ? __fdividef(1, 1 + __expf(-u)) : 1 / (1 + expf(-u));
    return {u * s, s * (1 + u * (1 - s))};
  }
}

}  // namespace fathom::engine::cuda
