#include "engine/ops/activation.h"

#include "engine/differentiator.h"
#include "engine/require.h"

namespace fathom::engine {

void check(const Activation& op, const StepPlan& plan) {
  const Tensor& y = plan.tensor(op.y);
  const std::int64_t inputs = op.kind == ActivationKind::swiglu ? 2 : 1;
  require(has_shape(plan, op.u, y.rows, y.cols * inputs), "activation: wrong shape");
  require(plan.tensor(op.u).dtype == y.dtype, "activation: types differ");
}

void differentiate(const Activation& op, Differentiator& out) {
  const TensorId dy = out.incoming(op.y);
  if (!dy.exists()) return;
  const auto du = out.slot(op.u);
  if (du.id.exists()) out.append(ActivationBackward{dy, op.u, du.id, du.mode, op.kind});
}

}  // namespace fathom::engine
