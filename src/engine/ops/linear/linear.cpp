#include "engine/ops/linear/linear.h"

#include "engine/plan/differentiator.h"
#include "engine/require.h"

namespace fathom::engine {

void check(const Linear& op, const StepPlan& plan) {
  const Tensor& x = plan.tensor(op.x);
  const Tensor& w = plan.tensor(op.weight);
  require(x.cols == w.cols, "linear: input and weight differ in width");
  require(x.dtype == w.dtype, "linear: input and weight differ in type");
  require(has_shape(plan, op.y, x.rows, w.rows), "linear: wrong shape of the result");
  require(x.dtype == plan.tensor(op.y).dtype, "linear: input and result differ in type");
  require(is_row_or_none(plan, op.bias, w.rows), "linear: wrong shape of the bias");
}

void differentiate(const Linear& op, Differentiator& out) {
  const TensorId dy = out.incoming(op.y);
  if (!dy.exists()) return;
  const auto dx = out.slot(op.x);
  const auto weight = out.slot(op.weight);
  const auto bias = out.slot(op.bias);
  out.append(LinearBackward{dy, op.x, op.weight, dx.id, weight.id, bias.id, dx.mode, weight.mode,
                            bias.mode});
}

}  // namespace fathom::engine
