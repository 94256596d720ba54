#include "engine/ops/embed/embed.h"

#include "engine/plan/differentiator.h"
#include "engine/require.h"

namespace fathom::engine {

void check(const Embed& op, const StepPlan& plan) {
  const Tensor& y = plan.tensor(op.y);
  require(plan.tensor(op.tokens).dtype == DType::i32, "embed: tokens must be integers");
  require(has_shape(plan, op.tokens, y.rows, 1), "embed: one token a row");
  require(plan.tensor(op.table).cols == y.cols, "embed: table and result differ in width");
  if (!op.positions.exists()) return;
  require(plan.tensor(op.positions).cols == y.cols, "embed: positions differ in width");
  require(y.rows % plan.tensor(op.positions).rows == 0, "embed: rows are whole contexts");
}

void differentiate(const Embed& op, Differentiator& out) {
  const TensorId dy = out.incoming(op.y);
  if (!dy.exists()) return;
  const auto table = out.slot(op.table);
  const auto positions = out.slot(op.positions);
  out.append(
      EmbedBackward{dy, op.tokens, table.id, positions.id, table.mode, positions.mode, op.scale});
}

}  // namespace fathom::engine
