#include <algorithm>
#include <cmath>

#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {
namespace {

std::vector<double> logits_of(const Context& context, TensorId x, TensorId weight, TensorId bias,
                              float scale, std::int64_t n) {
  const std::int64_t width = context.tensor(x).cols, classes = context.tensor(weight).rows;
  std::vector<double> z(static_cast<std::size_t>(classes));
  for (std::int64_t v = 0; v < classes; ++v) {
    double sum = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      sum += context.data(x)[n * width + c] * context.data(weight)[v * width + c];
    }
    z[static_cast<std::size_t>(v)] = scale * sum + (bias.exists() ? context.data(bias)[v] : 0);
  }
  return z;
}

double log_sum_exp(const std::vector<double>& z) {
  const double top = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (const double value : z) sum += std::exp(value - top);
  return top + std::log(sum);
}

}  // namespace

void run(const HeadLoss& op, const Context& context) {
  double total = 0;
  for (std::int64_t n = 0; n < context.tensor(op.x).rows; ++n) {
    const auto target = static_cast<std::int64_t>(context.data(op.targets)[n]);
    context.data(op.losses)[n] = 0;
    if (target < 0) continue;
    const auto z = logits_of(context, op.x, op.weight, op.bias, op.scale, n);
    context.data(op.losses)[n] = log_sum_exp(z) - z[static_cast<std::size_t>(target)];
    total += context.data(op.losses)[n];
  }
  context.data(op.loss)[0] = total * context.scalars.loss_scale;
}

void run(const HeadLossBackward& op, const Context& context) {
  run(HeadLoss{op.x, op.weight, op.bias, op.targets, op.losses, op.loss, op.scale}, context);
  const auto clear = [&](TensorId id, GradMode mode) {
    if (!id.exists() || mode == GradMode::accumulate) return;
    std::fill_n(context.data(id), context.tensor(id).size(), 0.0);
  };
  clear(op.dx, op.dx_mode);
  clear(op.d_weight, op.d_weight_mode);
  clear(op.d_bias, op.d_bias_mode);
  const std::int64_t width = context.tensor(op.x).cols, classes = context.tensor(op.weight).rows;
  for (std::int64_t n = 0; n < context.tensor(op.x).rows; ++n) {
    const auto target = static_cast<std::int64_t>(context.data(op.targets)[n]);
    if (target < 0) continue;
    const auto z = logits_of(context, op.x, op.weight, op.bias, op.scale, n);
    const double normaliser = log_sum_exp(z);
    for (std::int64_t v = 0; v < classes; ++v) {
      const double dz = context.scalars.loss_scale *
                        (std::exp(z[static_cast<std::size_t>(v)] - normaliser) - (v == target));
      if (op.d_bias.exists()) context.data(op.d_bias)[v] += dz;
      for (std::int64_t c = 0; c < width; ++c) {
        if (op.dx.exists()) {
          context.data(op.dx)[n * width + c] +=
              op.scale * dz * context.data(op.weight)[v * width + c];
        }
        if (op.d_weight.exists()) {
          context.data(op.d_weight)[v * width + c] +=
              op.scale * dz * context.data(op.x)[n * width + c];
        }
      }
    }
  }
}

void run(const Logits& op, const Context& context) {
  const std::int64_t classes = context.tensor(op.weight).rows;
  for (std::int64_t n = 0; n < context.tensor(op.x).rows; ++n) {
    const auto z = logits_of(context, op.x, op.weight, op.bias, op.scale, n);
    std::copy(z.begin(), z.end(), context.data(op.logits) + n * classes);
  }
}

}  // namespace fathom::engine::ref
