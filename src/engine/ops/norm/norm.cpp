#include "engine/ops/norm/norm.h"

#include "engine/plan/differentiator.h"
#include "engine/require.h"

namespace fathom::engine {

void check(const Norm& op, const StepPlan& plan) {
  const Tensor& x = plan.tensor(op.x);
  require(same_shape(plan, op.y, op.x), "norm: wrong shape of the result");
  require(has_shape(plan, op.stats, x.rows, 2), "norm: statistics are two numbers a row");
  require(is_row_or_none(plan, op.gain, x.cols), "norm: wrong shape of the gain");
  require(is_row_or_none(plan, op.bias, x.cols), "norm: wrong shape of the bias");
  require(op.branch.exists() == op.r.exists(), "norm: a branch and its sum come together");
  if (!op.branch.exists()) {
    require(op.stream_scale == 1, "norm: a stream without a branch is not scaled");
    return;
  }
  require(same_shape(plan, op.branch, op.x), "norm: branch and stream differ");
  require(same_shape(plan, op.r, op.x), "norm: sum and stream differ");
  require(plan.tensor(op.r).dtype == x.dtype, "norm: sum and stream differ in type");
}

void differentiate(const Norm& op, Differentiator& out) {
  const TensorId dy = out.incoming(op.y);
  const TensorId incoming = out.incoming(op.r);
  if (!dy.exists() && !incoming.exists()) return;
  const auto dx = out.slot(op.x);
  const bool unscaled = op.stream_scale == 1 && op.branch_scale == 1;
  const bool shared = op.branch.exists() && unscaled && dx.id.exists() &&
                      dx.mode == GradMode::overwrite && out.share(op.branch, op.x, dx.id);
  const auto branch = shared ? Differentiator::Slot{} : out.slot(op.branch);
  if (!dy.exists()) {
    out.append(ResidualBackward{incoming, dx.id, branch.id, dx.mode, branch.mode, op.stream_scale,
                                op.branch_scale});
    return;
  }
  const auto gain = out.slot(op.gain);
  const auto bias = out.slot(op.bias);
  out.append(NormBackward{.dy = dy,
                          .incoming = incoming,
                          .r = op.normalised_input(),
                          .stats = op.stats,
                          .gain = op.gain,
                          .dx = dx.id,
                          .d_branch = branch.id,
                          .d_gain = gain.id,
                          .d_bias = bias.id,
                          .dx_mode = dx.mode,
                          .d_branch_mode = branch.mode,
                          .d_gain_mode = gain.mode,
                          .d_bias_mode = bias.mode,
                          .kind = op.kind,
                          .stream_scale = op.stream_scale,
                          .branch_scale = op.branch_scale});
}

}  // namespace fathom::engine
