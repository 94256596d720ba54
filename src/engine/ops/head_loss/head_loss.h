// The classifier and its cross entropy, fused over chunks of rows so that the logits of all rows
// never exist at once.
//
//   z = scale * x W^T + b,   losses[n] = log sum_v exp z[n, v] - z[n, target[n]]
//   loss = loss_scale * sum over n of losses[n]          (target < 0: the row does not count)
//
// Backward: dz = loss_scale (softmax(z) - onehot(target)),  dx = scale dz W,
//   dW = scale dz^T x,  db = sum of dz.
// The gradient of the loss needs nothing from later ops, so HeadLossBackward yields the loss too
// and takes the forward op's place in a training program. Logits is the bare GEMM, for
// inference.
//
// x [N, D] and W [V, D] of one type; b f32 [1, V] or none; targets i32 [N, 1]; losses f32 [N, 1];
// loss f32 [1, 1].
#pragma once

#include "engine/plan/uses.h"

namespace fathom::engine {

class StepPlan;
class Differentiator;

struct HeadLoss {
  TensorId x, weight, bias, targets;
  TensorId losses, loss;
  float scale = 1;

  Uses uses() const { return {{x, weight, bias, targets}, {losses, loss}}; }
};

struct HeadLossBackward {
  TensorId x, weight, bias, targets;
  TensorId losses, loss;
  TensorId dx, d_weight, d_bias;
  GradMode dx_mode = GradMode::overwrite;
  GradMode d_weight_mode = GradMode::overwrite;
  GradMode d_bias_mode = GradMode::overwrite;
  float scale = 1;

  Uses uses() const { return {{x, weight, bias, targets}, {losses, loss, dx, d_weight, d_bias}}; }
};

/// logits [N, V] f32 = scale * x W^T + b; no gradient.
struct Logits {
  TensorId x, weight, bias, logits;
  float scale = 1;

  Uses uses() const { return {{x, weight, bias}, {logits}}; }
};

void check(const HeadLoss& op, const StepPlan& plan);
void check(const Logits& op, const StepPlan& plan);
void differentiate(const HeadLoss& op, Differentiator& out);
void differentiate(const Logits& op, Differentiator& out);

}  // namespace fathom::engine
