// The GEMM of a layer.
//
//   y = x W^T + b          x [N, I], W [O, I], b f32 [1, O] or none, y [N, O]
//
// Backward:  dx = dy W,   dW = dy^T x,   db = sum over rows of dy.
// x, W and y have one type, and dx and dy with them; dW and db are f32. Sums run in f32 or wider.
#pragma once

#include "engine/plan/uses.h"

namespace fathom::engine {

class StepPlan;
class Differentiator;

struct Linear {
  TensorId x, weight, bias, y;

  Uses uses() const { return {{x, weight, bias}, {y}}; }
};

struct LinearBackward {
  TensorId dy, x, weight;
  TensorId dx, d_weight, d_bias;
  GradMode dx_mode = GradMode::overwrite;
  GradMode d_weight_mode = GradMode::overwrite;
  GradMode d_bias_mode = GradMode::overwrite;

  bool makes_parameter_gradients() const { return d_weight.exists() || d_bias.exists(); }
  Uses uses() const {
    return {{dy, d_weight.exists() ? x : TensorId{}, dx.exists() ? weight : TensorId{}},
            {dx, d_weight, d_bias}};
  }
};

void check(const Linear& op, const StepPlan& plan);
void differentiate(const Linear& op, Differentiator& out);

}  // namespace fathom::engine
