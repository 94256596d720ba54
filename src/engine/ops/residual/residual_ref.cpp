#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {

void run(const Residual& op, const Context& context) {
  for (std::int64_t i = 0; i < context.tensor(op.r).size(); ++i) {
    context.data(op.r)[i] =
        op.stream_scale * context.data(op.x)[i] + op.branch_scale * context.data(op.branch)[i];
  }
}

void run(const ResidualBackward& op, const Context& context) {
  for (std::int64_t i = 0; i < context.tensor(op.dr).size(); ++i) {
    const double dr = context.data(op.dr)[i];
    if (op.dx.exists()) put(&context.data(op.dx)[i], op.stream_scale * dr, op.dx_mode);
    if (op.d_branch.exists()) {
      put(&context.data(op.d_branch)[i], op.branch_scale * dr, op.d_branch_mode);
    }
  }
}

void run(const AddPositions& op, const Context& context) {
  const std::int64_t period = context.tensor(op.positions).size();
  for (std::int64_t i = 0; i < context.tensor(op.y).size(); ++i) {
    context.data(op.y)[i] = context.data(op.x)[i] + context.data(op.positions)[i % period];
  }
}

void run(const AddPositionsBackward& op, const Context& context) {
  const std::int64_t size = context.tensor(op.dy).size();
  const std::int64_t period =
      op.d_positions.exists() ? context.tensor(op.d_positions).size() : size;
  for (std::int64_t i = 0; i < size; ++i) {
    const double d = context.data(op.dy)[i];
    if (op.dx.exists()) put(&context.data(op.dx)[i], d, op.dx_mode);
    if (!op.d_positions.exists()) continue;
    put(&context.data(op.d_positions)[i % period], d,
        i < period ? op.d_positions_mode : GradMode::accumulate);
  }
}

}  // namespace fathom::engine::ref
