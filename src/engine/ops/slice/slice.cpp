#include "engine/ops/slice/slice.h"

#include "engine/plan/differentiator.h"
#include "engine/require.h"

namespace fathom::engine {
namespace {

void check_slice(const StepPlan& plan, TensorId whole, TensorId part, std::int64_t first) {
  const Tensor& wide = plan.tensor(whole);
  require(plan.tensor(part).rows == wide.rows, "slice: rows differ");
  require(plan.tensor(part).cols <= wide.cols, "slice: wider than the stream");
  require(first >= 0 && first < wide.cols, "slice: begins outside the stream");
}

}  // namespace

void check(const Slice& op, const StepPlan& plan) {
  check_slice(plan, op.x, op.y, op.first);
}

void check(const AddSlice& op, const StepPlan& plan) {
  check_slice(plan, op.x, op.branch, op.first);
  require(same_shape(plan, op.r, op.x), "slice: sum and stream differ");
  require(plan.tensor(op.r).dtype == plan.tensor(op.x).dtype, "slice: types differ");
}

void differentiate(const Slice& op, Differentiator& out) {
  const TensorId dy = out.incoming(op.y);
  if (!dy.exists()) return;
  const auto dx = out.slot(op.x);
  if (dx.id.exists()) out.append(SliceBackward{dy, dx.id, dx.mode, op.first});
}

void differentiate(const AddSlice& op, Differentiator& out) {
  const TensorId dr = out.incoming(op.r);
  if (!dr.exists()) return;
  const auto dx = out.slot(op.x);
  const auto branch = out.slot(op.branch);
  out.append(AddSliceBackward{dr, dx.id, branch.id, dx.mode, branch.mode, op.first, op.scale});
}

}  // namespace fathom::engine
