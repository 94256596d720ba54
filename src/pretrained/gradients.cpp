#include "pretrained/gradients.h"

#include <cmath>
#include <numbers>

#include "core/counts.h"

namespace fathom::pretrained {
namespace {

struct Curve {
  double value, slope;
};

Curve activation_at(double u, Activation kind) {
  switch (kind) {
    case Activation::silu: {
      const double s = 1 / (1 + std::exp(-u));
      return {u * s, s * (1 + u * (1 - s))};
    }
    case Activation::gelu_tanh: {
      const double c = std::sqrt(2 / std::numbers::pi), z = c * (u + 0.044715 * u * u * u);
      const double t = std::tanh(z), dz = c * (1 + 3 * 0.044715 * u * u);
      return {0.5 * u * (1 + t), 0.5 * (1 + t) + 0.5 * u * (1 - t * t) * dz};
    }
    case Activation::gelu: {
      const double below = 0.5 * (1 + std::erf(u / std::numbers::sqrt2));
      const double density = std::exp(-u * u / 2) / std::sqrt(2 * std::numbers::pi);
      return {u * below, below + u * density};
    }
    case Activation::relu:
      return {u > 0 ? u : 0, u > 0 ? 1.0 : 0.0};
    case Activation::identity:
      break;
  }
  return {u, 1};
}

}  // namespace

void norm_gradient(const float* x, std::int64_t rows, std::int64_t size, NormKind kind,
                   double epsilon, const Vector& gain, float* gradient) {
  const double n = as_double(size);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* in = x + r * size;
    float* g = gradient + r * size;
    double mean = 0, square = 0;
    if (kind == NormKind::layer) {
      for (std::int64_t i = 0; i < size; ++i) mean += in[i] / n;
    }
    for (std::int64_t i = 0; i < size; ++i) square += (in[i] - mean) * (in[i] - mean);
    const double inverse = 1 / std::sqrt(square / n + epsilon);
    // y = gain * z, z = (x - mean) inverse: dx = inverse (w - mean(w) - z mean(w z)), w = gain dy.
    double sum = 0, along = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const double w = static_cast<double>(g[i]) * gain[as_size(i)];
      if (kind == NormKind::layer) sum += w / n;
      along += w * (in[i] - mean) * inverse / n;
    }
    for (std::int64_t i = 0; i < size; ++i) {
      const double w = static_cast<double>(g[i]) * gain[as_size(i)];
      g[i] = static_cast<float>(inverse * (w - sum - (in[i] - mean) * inverse * along));
    }
  }
}

void activation_gradient(const float* u, const float* dy, std::int64_t rows, std::int64_t ffn,
                         Activation kind, bool gated, float* du) {
  const std::int64_t wide = gated ? 2 * ffn : ffn;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < ffn; ++i) {
      const Curve at = activation_at(u[r * wide + i], kind);
      const double d = dy[r * ffn + i];
      const double factor = gated ? u[r * wide + ffn + i] : 1;
      du[r * wide + i] = static_cast<float>(d * factor * at.slope);
      if (gated) du[r * wide + ffn + i] = static_cast<float>(d * at.value);
    }
  }
}

void input_gradient(const float* dy, std::int64_t rows, const Matrix& w, float* dx) {
  multiply_strided(rows, w.cols, w.rows, 1, dy, w.rows, w.values.data(), w.cols, false, dx, w.cols);
}

}  // namespace fathom::pretrained
