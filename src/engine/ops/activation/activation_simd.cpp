#include "engine/cpu/simd.h"

namespace fathom::engine::cpu::FATHOM_ISA {
namespace {

struct Value {
  Vec y, slope;
};

struct Relu {
  static Value at(Vec u) { return {max(u, Vec{}), select(u > Vec{}, splat(1.0f), Vec{})}; }
};

/// Phi by Abramowitz and Stegun 7.1.26 (absolute error below 1.5e-7), whose exp(-u^2/2) is the one
/// the slope needs.
struct Gelu {
  static Value at(Vec u) {
    const Vec z = abs(u) * 0.70710678118654752f;
    const Vec gauss = exp(u * u * -0.5f);
    const Vec t = 1.0f / (1.0f + z * 0.3275911f);
    Vec p = t * 1.061405429f - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const Vec upper = p * t * gauss * 0.5f;  // 1 - Phi(|u|)
    const Vec phi = select(u < Vec{}, upper, 1.0f - upper);
    return {u * phi, phi + u * gauss * 0.3989422804014327f};
  }
};

struct GeluTanh {
  static Value at(Vec u) {
    const Vec inner = u * (u * u * 0.044715f + 1.0f) * 0.7978845608028654f;
    // tanh(a) = 1 - 2 / (exp(2a) + 1)
    const Vec t = 1.0f - 2.0f / (exp(inner * 2.0f) + 1.0f);
    const Vec slope_inner = (u * u * 0.134145f + 1.0f) * 0.7978845608028654f;
    return {u * (t + 1.0f) * 0.5f, (t + 1.0f) * 0.5f + u * (1.0f - t * t) * slope_inner * 0.5f};
  }
};

struct Silu {
  static Value at(Vec u) {
    const Vec s = 1.0f / (1.0f + exp(-u));
    return {u * s, s * (u * (1.0f - s) + 1.0f)};
  }
};

template <class Body>
void with_kind(ActivationKind kind, Body body) {
  switch (kind) {
    case ActivationKind::relu:
      return body(Relu{});
    case ActivationKind::gelu:
      return body(Gelu{});
    case ActivationKind::gelu_tanh:
      return body(GeluTanh{});
    case ActivationKind::swiglu:
      return body(Silu{});
  }
}

template <class T, class F>
void forward(const ActivationArgs& args, std::int64_t begin, std::int64_t end, F) {
  const bool gated = args.kind == ActivationKind::swiglu;
  const std::int64_t width = args.width;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* u = static_cast<const T*>(args.u.data) + row * width * (gated ? 2 : 1);
    T* y = static_cast<T*>(args.y.data) + row * width;
    for_vectors(width, [&](std::int64_t i, std::int64_t count) {
      Vec value = F::at(load_upto(u + i, count)).y;
      if (gated) value = value * load_upto(u + width + i, count);
      store_upto(y + i, value, count);
    });
  }
}

template <class T, class F>
void backward(const ActivationArgs& args, std::int64_t begin, std::int64_t end, F) {
  const bool gated = args.kind == ActivationKind::swiglu;
  const std::int64_t width = args.width;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t start = row * width * (gated ? 2 : 1);
    const T* u = static_cast<const T*>(args.u.data) + start;
    const T* dy = static_cast<const T*>(args.dy.data) + row * width;
    T* du = static_cast<T*>(args.du.data) + start;
    for_vectors(width, [&](std::int64_t i, std::int64_t count) {
      const Vec d = load_upto(dy + i, count);
      const Value value = F::at(load_upto(u + i, count));
      if (gated) {
        const Vec factor = load_upto(u + width + i, count);
        put(du + width + i, d * value.y, count, args.accumulate);
        put(du + i, d * factor * value.slope, count, args.accumulate);
      } else {
        put(du + i, d * value.slope, count, args.accumulate);
      }
    });
  }
}

}  // namespace

void activation_forward(const ActivationArgs& args, std::int64_t begin, std::int64_t end) {
  with_type(args.y, [&](auto type) {
    with_kind(args.kind,
              [&](auto curve) { forward<ElementOf<decltype(type)>>(args, begin, end, curve); });
  });
}

void activation_backward(const ActivationArgs& args, std::int64_t begin, std::int64_t end) {
  with_type(args.dy, [&](auto type) {
    with_kind(args.kind,
              [&](auto curve) { backward<ElementOf<decltype(type)>>(args, begin, end, curve); });
  });
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
