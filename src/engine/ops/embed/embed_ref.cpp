#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {

void run(const Embed& op, const Context& context) {
  const Tensor& y = context.tensor(op.y);
  const double* positions = context.data(op.positions);
  const std::int64_t period = op.positions.exists() ? context.tensor(op.positions).rows : 1;
  for (std::int64_t n = 0; n < y.rows; ++n) {
    const auto token = static_cast<std::int64_t>(context.data(op.tokens)[n]);
    for (std::int64_t c = 0; c < y.cols; ++c) {
      const double position = positions ? positions[(n % period) * y.cols + c] : 0;
      context.data(op.y)[n * y.cols + c] =
          op.scale * context.data(op.table)[token * y.cols + c] + position;
    }
  }
}

namespace {

void clear(const Context& context, TensorId id, GradMode mode) {
  if (!id.exists() || mode == GradMode::accumulate) return;
  for (std::int64_t i = 0; i < context.tensor(id).size(); ++i) context.data(id)[i] = 0;
}

}  // namespace

void run(const EmbedBackward& op, const Context& context) {
  clear(context, op.d_table, op.d_table_mode);
  clear(context, op.d_positions, op.d_positions_mode);
  const Tensor& dy = context.tensor(op.dy);
  const std::int64_t period = op.d_positions.exists() ? context.tensor(op.d_positions).rows : 1;
  for (std::int64_t n = 0; n < dy.rows; ++n) {
    const auto token = static_cast<std::int64_t>(context.data(op.tokens)[n]);
    for (std::int64_t c = 0; c < dy.cols; ++c) {
      const double value = context.data(op.dy)[n * dy.cols + c];
      if (op.d_table.exists()) context.data(op.d_table)[token * dy.cols + c] += op.scale * value;
      if (op.d_positions.exists()) {
        context.data(op.d_positions)[(n % period) * dy.cols + c] += value;
      }
    }
  }
}

}  // namespace fathom::engine::ref
