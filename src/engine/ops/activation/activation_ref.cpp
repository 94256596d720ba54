#include <cmath>
#include <numbers>

#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {
namespace {

struct Value {
  double y, slope;
};

Value evaluate(ActivationKind kind, double u) {
  switch (kind) {
    case ActivationKind::relu:
      return {u > 0 ? u : 0, u > 0 ? 1.0 : 0.0};
    case ActivationKind::gelu: {
      const double phi = 0.5 * (1 + std::erf(u / std::numbers::sqrt2));
      const double density = std::exp(-0.5 * u * u) / std::sqrt(2 * std::numbers::pi);
      return {u * phi, phi + u * density};
    }
    case ActivationKind::gelu_tanh: {
      const double k = std::sqrt(2 / std::numbers::pi);
      const double t = std::tanh(k * (u + 0.044715 * u * u * u));
      return {0.5 * u * (1 + t),
              0.5 * (1 + t) + 0.5 * u * (1 - t * t) * k * (1 + 3 * 0.044715 * u * u)};
    }
    case ActivationKind::swiglu: {  // silu of the gate
      const double s = 1 / (1 + std::exp(-u));
      return {u * s, s * (1 + u * (1 - s))};
    }
  }
  return {};
}

}  // namespace

void run(const Activation& op, const Context& context) {
  const Tensor& y = context.tensor(op.y);
  const bool gated = op.kind == ActivationKind::swiglu;
  const std::int64_t width = context.tensor(op.u).cols;
  const double* bias = context.data(op.bias);
  const auto u = [&](std::int64_t n, std::int64_t c) {
    return context.data(op.u)[n * width + c] + (bias ? bias[c] : 0);
  };
  for (std::int64_t n = 0; n < y.rows; ++n) {
    for (std::int64_t c = 0; c < y.cols; ++c) {
      const Value value = evaluate(op.kind, u(n, c));
      context.data(op.y)[n * y.cols + c] = value.y * (gated ? u(n, c + y.cols) : 1.0);
      if (op.slopes.exists()) context.data(op.slopes)[n * y.cols + c] = value.slope;
    }
  }
}

void run(const ActivationBackward& op, const Context& context) {
  const Tensor& dy = context.tensor(op.dy);
  const std::int64_t width = context.tensor(op.du).cols;
  const double* bias = context.data(op.bias);
  const auto u = [&](std::int64_t n, std::int64_t c) {
    return context.data(op.u)[n * width + c] + (bias ? bias[c] : 0);
  };
  double* du = context.data(op.du);
  for (std::int64_t n = 0; n < dy.rows; ++n) {
    for (std::int64_t c = 0; c < dy.cols; ++c) {
      const double d = context.data(op.dy)[n * dy.cols + c];
      const std::int64_t at = n * width + c;
      if (op.kind == ActivationKind::swiglu) {
        const Value silu = evaluate(op.kind, u(n, c));
        const double value = u(n, c + dy.cols);
        put(&du[at], d * value * silu.slope, op.mode);
        put(&du[at + dy.cols], d * silu.y, op.mode);
      } else {
        const double slope =
            op.slopes.exists() ? context.data(op.slopes)[at] : evaluate(op.kind, u(n, c)).slope;
        put(&du[at], d * slope, op.mode);
      }
    }
  }
}

}  // namespace fathom::engine::ref
