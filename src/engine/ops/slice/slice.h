// Columns of a stream, wrapping around at its end: a layer may read and write a rotating slice.
//
//   Slice     y_c = x_((first + c) mod D) for c < d                 x [N, D], y [N, d]
//   AddSlice  r = x, then r_((first + c) mod D) += scale branch_c   branch [N, d], r [N, D]
//
// Backward: dx of a slice is dy in its columns and zero elsewhere; dx of a sum is dr, d_branch is
// scale times the slice of dr. r has x's type, y and branch may have another.
#pragma once

#include "engine/plan/uses.h"

namespace fathom::engine {

class StepPlan;
class Differentiator;

struct Slice {
  TensorId x, y;
  std::int64_t first = 0;

  Uses uses() const { return {{x}, {y}}; }
};

struct SliceBackward {
  TensorId dy, dx;
  GradMode mode = GradMode::overwrite;
  std::int64_t first = 0;

  Uses uses() const { return {{dy, mode == GradMode::accumulate ? dx : TensorId{}}, {dx}}; }
};

struct AddSlice {
  TensorId x, branch, r;
  std::int64_t first = 0;
  float scale = 1;

  Uses uses() const { return Uses{{x, branch}, {r}}.may_replace(x, r); }
};

struct AddSliceBackward {
  TensorId dr, dx, d_branch;
  GradMode dx_mode = GradMode::overwrite, d_branch_mode = GradMode::overwrite;
  std::int64_t first = 0;
  float scale = 1;

  Uses uses() const { return {{dr}, {dx, d_branch}}; }
};

void check(const Slice& op, const StepPlan& plan);
void check(const AddSlice& op, const StepPlan& plan);
void differentiate(const Slice& op, Differentiator& out);
void differentiate(const AddSlice& op, Differentiator& out);

}  // namespace fathom::engine
