// The residual sum of a model without normalisation, and the sum of a stream and a table of
// positions.
//
//   Residual:      r = stream_scale * x + branch_scale * branch
//   AddPositions:  y[n, :] = x[n, :] + positions[n mod T, :]
//
// Backward: dx = stream_scale dr, d_branch = branch_scale dr; dx = dy,
// d_positions[t, :] += sum over n = t mod T of dy[n, :].
#pragma once

#include "engine/plan/uses.h"

namespace fathom::engine {

class StepPlan;
class Differentiator;

struct Residual {
  TensorId x, branch, r;
  float stream_scale = 1;
  float branch_scale = 1;

  Uses uses() const { return Uses{{x, branch}, {r}}.may_replace(x, r); }
};

struct ResidualBackward {
  TensorId dr, dx, d_branch;
  GradMode dx_mode = GradMode::overwrite;
  GradMode d_branch_mode = GradMode::overwrite;
  float stream_scale = 1;
  float branch_scale = 1;

  Uses uses() const { return {{dr}, {dx, d_branch}}; }
};

struct AddPositions {
  TensorId x, positions, y;

  Uses uses() const { return Uses{{x, positions}, {y}}.may_replace(x, y); }
};

struct AddPositionsBackward {
  TensorId dy, dx, d_positions;
  GradMode dx_mode = GradMode::overwrite;
  GradMode d_positions_mode = GradMode::overwrite;

  Uses uses() const { return Uses{{dy}, {dx, d_positions}}.may_replace(dy, dx); }
};

void check(const Residual& op, const StepPlan& plan);
void check(const AddPositions& op, const StepPlan& plan);
void differentiate(const Residual& op, Differentiator& out);
void differentiate(const AddPositions& op, Differentiator& out);

}  // namespace fathom::engine
