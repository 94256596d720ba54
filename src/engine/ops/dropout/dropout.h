// Dropout with masks that are drawn, never stored.
//
//   y[i] = x[i] keep(i) / (1 - p),   keep(i) = word >= p 2^32
//
// where word is 32 bits of Philox at counter (i / 4, draw) and key (seed, stream): forward and
// backward, every backend and a resumed run draw the same mask. Backward: dx = dy keep / (1 - p).
#pragma once

#include "engine/plan/uses.h"

namespace fathom::engine {

class StepPlan;
class Differentiator;

struct DropoutMask {
  float probability = 0;
  std::uint32_t seed = 0;
  std::uint32_t stream = 0;
};

struct Dropout {
  TensorId x, y;
  DropoutMask mask;

  Uses uses() const { return Uses{{x}, {y}}.may_replace(x, y); }
};

struct DropoutBackward {
  TensorId dy, dx;
  GradMode mode = GradMode::overwrite;
  DropoutMask mask;

  Uses uses() const { return Uses{{dy}, {dx}}.may_replace(dy, dx); }
};

void check(const Dropout& op, const StepPlan& plan);
void differentiate(const Dropout& op, Differentiator& out);

}  // namespace fathom::engine
