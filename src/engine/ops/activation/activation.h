// The nonlinearity of the feed-forward sublayer.
//
//   relu       y = max(u, 0)
//   gelu       y = u Phi(u)                                   (erf form, arXiv 1606.08415)
//   gelu_tanh  y = u/2 (1 + tanh(sqrt(2/pi) (u + 0.044715 u^3)))   (GPT-2's approximation)
//   swiglu     y = silu(g) * h with u = [g | h], silu(g) = g sigmoid(g)   (arXiv 2002.05202)
//
// Backward: du = dy * y'(u), elementwise; swiglu: dg = dy h silu'(g), dh = dy silu(g).
// u [N, F] (swiglu: [N, 2F]), y [N, F], both of one type.
//
// The fusion pass may move here the bias of the Linear that makes u: then u lacks it, and u above
// means u + bias.
//
// All but swiglu can keep y'(u), which lies between -0.13 and 1.13, for the backward instead of u:
// `slopes` u8 [N, F] = 200 y'(u) + 28, rounded (0 and 1 are exact), half of what u takes in bf16. A
// device may choose the order of its elements.
#pragma once

#include "engine/ops/activation/activation_kind.h"
#include "engine/plan/uses.h"

namespace fathom::engine {

class StepPlan;
class Differentiator;

inline constexpr float kSlopeSteps = 200, kSlopeZero = 28;

struct Activation {
  TensorId u, y;
  ActivationKind kind = ActivationKind::gelu;
  TensorId slopes = {};  // or none: the backward reads u
  TensorId bias = {};    // f32, added to u first; or none

  Uses uses() const { return Uses{{u, bias}, {y, slopes}}.may_replace(u, y); }
};

struct ActivationBackward {
  TensorId dy, u, du;  // no u where there are slopes
  GradMode mode = GradMode::overwrite;
  ActivationKind kind = ActivationKind::gelu;
  TensorId slopes = {};
  TensorId bias = {};  // of u, where u is read and lacks it

  Uses uses() const {
    Uses uses{{dy, u, slopes, bias}, {du}};
    return kind == ActivationKind::swiglu ? uses.may_replace(u, du) : uses.may_replace(dy, du);
  }
};

void check(const Activation& op, const StepPlan& plan);
void differentiate(const Activation& op, Differentiator& out);

}  // namespace fathom::engine
