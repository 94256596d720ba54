#include "engine/ops/head_loss/head_loss.h"

#include "engine/plan/differentiator.h"
#include "engine/require.h"

namespace fathom::engine {
namespace {

void check_product(const StepPlan& plan, TensorId x, TensorId weight, TensorId bias) {
  require(plan.tensor(x).cols == plan.tensor(weight).cols, "head: input and weight differ");
  require(plan.tensor(x).dtype == plan.tensor(weight).dtype, "head: types differ");
  require(is_row_or_none(plan, bias, plan.tensor(weight).rows), "head: wrong shape of the bias");
}

}  // namespace

void check(const HeadLoss& op, const StepPlan& plan) {
  check_product(plan, op.x, op.weight, op.bias);
  const std::int64_t rows = plan.tensor(op.x).rows;
  require(has_shape(plan, op.targets, rows, 1), "head: one target a row");
  require(has_shape(plan, op.losses, rows, 1), "head: one loss a row");
  require(has_shape(plan, op.loss, 1, 1), "head: the loss is one number");
}

void check(const Logits& op, const StepPlan& plan) {
  check_product(plan, op.x, op.weight, op.bias);
  require(has_shape(plan, op.logits, plan.tensor(op.x).rows, plan.tensor(op.weight).rows),
          "logits: wrong shape");
}

void differentiate(const HeadLoss& op, Differentiator& out) {
  const auto dx = out.slot(op.x);
  const auto weight = out.slot(op.weight);
  const auto bias = out.slot(op.bias);
  out.append(HeadLossBackward{op.x, op.weight, op.bias, op.targets, op.losses, op.loss, dx.id,
                              weight.id, bias.id, dx.mode, weight.mode, bias.mode, op.scale});
  out.replaces_forward();
}

void differentiate(const Logits&, Differentiator&) {}

}  // namespace fathom::engine
