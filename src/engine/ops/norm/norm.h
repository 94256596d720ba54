// Residual sum and normalisation in one pass over memory: one op serves pre-norm (r continues as
// the stream, y feeds the sublayer) and post-norm (y is both).
//
//   r = stream_scale * x + branch_scale * branch        (without a branch r is x itself)
//   layer:  y = (r - mean) / sqrt(var + epsilon) * gain + bias,   mean and var over the row
//   rms:    y = r / sqrt(mean(r^2) + epsilon) * gain
//
// Backward, with h = normalised r, g = dy * gain, s = 1/sqrt(...), <.> the mean over the row:
//   layer:  dr = incoming + s (g - <g> - h <g h>),   rms: dr = incoming + s (g - h <g h>)
//   dx = stream_scale dr,  d_branch = branch_scale dr,  d_gain = sum dy h,  d_bias = sum dy.
// `incoming` is the gradient that reaches r through the stream itself.
//
// x, branch, y: f32 or bf16; r has x's type; stats f32 [N, 2] = (mean, s); gain, bias f32 [1, D];
// without a gain it is 1, without a bias 0.
#pragma once

#include "core/enum_names.h"
#include "engine/plan/uses.h"

namespace fathom::engine {

class StepPlan;
class Differentiator;

enum class NormKind : std::uint8_t { layer, rms };
constexpr auto enum_names(NormKind) {
  return std::array{"layer", "rms"};
}

struct Norm {
  TensorId x, branch{}, gain, bias{};
  TensorId r{};  // none without a branch
  TensorId y, stats;
  NormKind kind = NormKind::layer;
  float epsilon = 1e-5f;
  float stream_scale = 1;
  float branch_scale = 1;

  TensorId normalised_input() const { return branch.exists() ? r : x; }
  Uses uses() const { return Uses{{x, branch, gain, bias}, {r, y, stats}}.may_replace(x, r); }
};

struct NormBackward {
  TensorId dy, incoming, r, stats, gain;
  TensorId dx, d_branch, d_gain, d_bias;
  GradMode dx_mode = GradMode::overwrite;
  GradMode d_branch_mode = GradMode::overwrite;
  GradMode d_gain_mode = GradMode::overwrite;
  GradMode d_bias_mode = GradMode::overwrite;
  NormKind kind = NormKind::layer;
  float stream_scale = 1;
  float branch_scale = 1;

  /// Whether dx is the gradient of the branch as well, both scales being 1.
  bool shares_gradient(TensorId branch_gradient) const {
    return dx == branch_gradient && dx_mode == GradMode::overwrite && !d_branch.exists() &&
           stream_scale == 1 && branch_scale == 1;
  }
  Uses uses() const {
    return Uses{{dy, incoming, r, stats, gain}, {dx, d_branch, d_gain, d_bias}}.may_replace(
        incoming, dx);
  }
};

void check(const Norm& op, const StepPlan& plan);
void differentiate(const Norm& op, Differentiator& out);

}  // namespace fathom::engine
