#include "engine/ops/residual/residual.h"

#include "engine/plan/differentiator.h"
#include "engine/require.h"

namespace fathom::engine {

void check(const Residual& op, const StepPlan& plan) {
  require(same_shape(plan, op.branch, op.x), "residual: branch and stream differ");
  require(same_shape(plan, op.r, op.x), "residual: sum and stream differ");
}

void check(const AddPositions& op, const StepPlan& plan) {
  const Tensor& x = plan.tensor(op.x);
  require(same_shape(plan, op.y, op.x), "positions: result and stream differ");
  require(plan.tensor(op.positions).cols == x.cols, "positions: wrong width");
  require(x.rows % plan.tensor(op.positions).rows == 0, "positions: rows are whole contexts");
}

void differentiate(const Residual& op, Differentiator& out) {
  const TensorId dr = out.incoming(op.r);
  if (!dr.exists()) return;
  const auto dx = out.slot(op.x);
  const auto branch = out.slot(op.branch);
  out.append(ResidualBackward{dr, dx.id, branch.id, dx.mode, branch.mode, op.stream_scale,
                              op.branch_scale});
}

void differentiate(const AddPositions& op, Differentiator& out) {
  const TensorId dy = out.incoming(op.y);
  if (!dy.exists()) return;
  const auto dx = out.slot(op.x);
  const auto positions = out.slot(op.positions);
  out.append(AddPositionsBackward{dy, dx.id, positions.id, dx.mode, positions.mode});
}

}  // namespace fathom::engine
