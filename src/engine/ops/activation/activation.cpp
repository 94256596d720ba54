#include "engine/ops/activation/activation.h"

#include "engine/plan/differentiator.h"
#include "engine/require.h"

namespace fathom::engine {

void check(const Activation& op, const StepPlan& plan) {
  const Tensor& y = plan.tensor(op.y);
  const std::int64_t inputs = op.kind == ActivationKind::swiglu ? 2 : 1;
  require(has_shape(plan, op.u, y.rows, y.cols * inputs), "activation: wrong shape");
  require(plan.tensor(op.u).dtype == y.dtype, "activation: types differ");
  if (!op.slopes.exists()) return;
  require(op.kind != ActivationKind::swiglu, "activation: a gate's slope is not kept");
  require(same_shape(plan, op.slopes, op.y) && plan.tensor(op.slopes).dtype == DType::u8,
          "activation: wrong slopes");
}

void differentiate(const Activation& op, Differentiator& out) {
  const TensorId dy = out.incoming(op.y);
  if (!dy.exists()) return;
  const auto du = out.slot(op.u);
  if (!du.id.exists()) return;
  const TensorId u = op.slopes.exists() ? TensorId{} : op.u;
  out.append(ActivationBackward{dy, u, du.id, du.mode, op.kind, op.slopes});
}

}  // namespace fathom::engine
