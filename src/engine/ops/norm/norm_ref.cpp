#include <cmath>

#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {

void run(const Norm& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  const std::int64_t width = x.cols;
  for (std::int64_t n = 0; n < x.rows; ++n) {
    double* r = context.data(op.normalised_input()) + n * width;
    for (std::int64_t c = 0; op.branch.exists() && c < width; ++c) {
      r[c] = op.stream_scale * context.data(op.x)[n * width + c] +
             op.branch_scale * context.data(op.branch)[n * width + c];
    }
    double mean = 0, square = 0;
    for (std::int64_t c = 0; op.kind == NormKind::layer && c < width; ++c) {
      mean += r[c] / static_cast<double>(width);
    }
    for (std::int64_t c = 0; c < width; ++c) {
      square += (r[c] - mean) * (r[c] - mean) / static_cast<double>(width);
    }
    const double inverse = 1 / std::sqrt(square + op.epsilon);
    context.data(op.stats)[2 * n] = mean;
    context.data(op.stats)[2 * n + 1] = inverse;
    for (std::int64_t c = 0; c < width; ++c) {
      const double gain = op.gain.exists() ? context.data(op.gain)[c] : 1;
      const double bias = op.bias.exists() ? context.data(op.bias)[c] : 0;
      context.data(op.y)[n * width + c] = (r[c] - mean) * inverse * gain + bias;
    }
  }
}

void run(const NormBackward& op, const Context& context) {
  const Tensor& r = context.tensor(op.r);
  const std::int64_t width = r.cols;
  const auto parameter = [&](TensorId id, GradMode mode, std::int64_t row, std::int64_t c,
                             double value) {
    if (id.exists()) put(&context.data(id)[c], value, row == 0 ? mode : GradMode::accumulate);
  };
  for (std::int64_t n = 0; n < r.rows; ++n) {
    const double* row = context.data(op.r) + n * width;
    const double* dy = context.data(op.dy) + n * width;
    const double mean = context.data(op.stats)[2 * n], inverse = context.data(op.stats)[2 * n + 1];
    const auto hat = [&](std::int64_t c) { return (row[c] - mean) * inverse; };
    const auto g = [&](std::int64_t c) {
      return dy[c] * (op.gain.exists() ? context.data(op.gain)[c] : 1);
    };
    double mean_g = 0, mean_gh = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      if (op.kind == NormKind::layer) mean_g += g(c) / static_cast<double>(width);
      mean_gh += g(c) * hat(c) / static_cast<double>(width);
    }
    for (std::int64_t c = 0; c < width; ++c) {
      const double passed = op.incoming.exists() ? context.data(op.incoming)[n * width + c] : 0;
      const double dr = passed + inverse * (g(c) - mean_g - hat(c) * mean_gh);
      if (op.dx.exists()) {
        put(&context.data(op.dx)[n * width + c], op.stream_scale * dr, op.dx_mode);
      }
      if (op.d_branch.exists()) {
        put(&context.data(op.d_branch)[n * width + c], op.branch_scale * dr, op.d_branch_mode);
      }
      parameter(op.d_gain, op.d_gain_mode, n, c, dy[c] * hat(c));
      parameter(op.d_bias, op.d_bias_mode, n, c, dy[c]);
    }
  }
}

}  // namespace fathom::engine::ref
