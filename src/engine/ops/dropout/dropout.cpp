#include "engine/ops/dropout/dropout.h"

#include "engine/plan/differentiator.h"
#include "engine/require.h"

namespace fathom::engine {

void check(const Dropout& op, const StepPlan& plan) {
  require(same_shape(plan, op.x, op.y), "dropout: shapes differ");
  require(op.mask.probability >= 0 && op.mask.probability < 1, "dropout: probability in [0, 1)");
}

void differentiate(const Dropout& op, Differentiator& out) {
  const TensorId dy = out.incoming(op.y);
  if (!dy.exists()) return;
  const auto dx = out.slot(op.x);
  if (dx.id.exists()) out.append(DropoutBackward{dy, dx.id, dx.mode, op.mask});
}

}  // namespace fathom::engine
