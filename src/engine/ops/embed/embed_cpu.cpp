#include <cstring>

#include "engine/cpu/cpu_ops.h"

namespace fathom::engine::cpu {

BoundOp bind(const Embed& op, const Context& context) {
  const Tensor& y = context.tensor(op.y);
  const EmbedArgs args{context.tokens(op.tokens),
                       context.floats(op.table),
                       context.floats(op.positions),
                       context.operand(op.y),
                       y.cols,
                       op.positions.exists() ? context.tensor(op.positions).rows : 1,
                       op.scale};
  return [args, rows = y.rows, &kernels = context.kernels,
          threads = context.threads](const StepScalars&) {
    parallel_ranges(threads, rows, 1, [&](std::int64_t begin, std::int64_t end) {
      kernels.embed_forward(args, begin, end);
    });
  };
}

BoundOp bind(const EmbedBackward& op, const Context& context) {
  const Tensor& dy = context.tensor(op.dy);
  const EmbedBackwardArgs args{context.tokens(op.tokens),
                               context.operand(op.dy),
                               context.floats(op.d_table),
                               dy.rows,
                               dy.cols,
                               op.scale};
  const std::int64_t clear = op.d_table.exists() && op.d_table_mode == GradMode::overwrite
                                 ? context.tensor(op.d_table).bytes()
                                 : 0;
  BoundOp positions;
  if (op.d_positions.exists()) {
    positions = bind_period_sum(context, args.dy, context.floats(op.d_positions), dy.rows, dy.cols,
                                context.tensor(op.d_positions).rows, 1, op.d_positions_mode);
  }
  return [args, clear, positions, &kernels = context.kernels,
          threads = context.threads](const StepScalars& scalars) {
    if (clear > 0) std::memset(args.d_table, 0, static_cast<std::size_t>(clear));
    // Every thread walks all rows in order for its own columns: no two add to one element.
    if (args.d_table) {
      parallel_ranges(threads, args.width, 16, [&](std::int64_t begin, std::int64_t end) {
        kernels.embed_backward(args, begin, end);
      });
    }
    if (positions) positions(scalars);
  };
}

}  // namespace fathom::engine::cpu
