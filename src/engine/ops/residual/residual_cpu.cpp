#include "engine/cpu/cpu_ops.h"

namespace fathom::engine::cpu {
namespace {

BoundOp bind_combine(const Context& context, const CombineArgs& args, std::int64_t size) {
  return [args, size, &kernels = context.kernels, threads = context.threads](const StepScalars&) {
    parallel_ranges(threads, size, 16, [&](std::int64_t begin, std::int64_t end) {
      kernels.combine(args, begin, end);
    });
  };
}

}  // namespace

BoundOp bind_period_sum(const Context& context, Operand x, float* sums, std::int64_t rows,
                        std::int64_t width, std::int64_t period, float factor, GradMode mode) {
  const PeriodSumArgs args{x, sums, rows, width, period, factor, mode == GradMode::accumulate};
  return [args, &kernels = context.kernels, threads = context.threads](const StepScalars&) {
    if (args.period == 1) {
      parallel_ranges(threads, args.width, 16, [&](std::int64_t begin, std::int64_t end) {
        kernels.column_sum(args, begin, end);
      });
    } else {
      parallel_ranges(threads, args.period, 1, [&](std::int64_t begin, std::int64_t end) {
        kernels.period_sum(args, begin, end);
      });
    }
  };
}

BoundOp bind(const Residual& op, const Context& context) {
  return bind_combine(context,
                      {context.operand(op.x), context.operand(op.branch), context.operand(op.r),
                       op.stream_scale, op.branch_scale, false},
                      context.tensor(op.r).size());
}

BoundOp bind(const ResidualBackward& op, const Context& context) {
  const std::int64_t size = context.tensor(op.dr).size();
  BoundOp stream, branch;
  if (op.dx.exists()) {
    stream = bind_combine(context,
                          {context.operand(op.dr),
                           {},
                           context.operand(op.dx),
                           op.stream_scale,
                           0,
                           op.dx_mode == GradMode::accumulate},
                          size);
  }
  if (op.d_branch.exists()) {
    branch = bind_combine(context,
                          {context.operand(op.dr),
                           {},
                           context.operand(op.d_branch),
                           op.branch_scale,
                           0,
                           op.d_branch_mode == GradMode::accumulate},
                          size);
  }
  return [stream, branch](const StepScalars& scalars) {
    if (branch) branch(scalars);
    if (stream) stream(scalars);
  };
}

BoundOp bind(const AddPositions& op, const Context& context) {
  const Tensor& y = context.tensor(op.y);
  const std::int64_t period = context.tensor(op.positions).size();
  const CombineArgs args{
      context.operand(op.x), context.operand(op.positions), context.operand(op.y), 1, 1, false};
  return [args, period, repeats = y.size() / period, &kernels = context.kernels,
          threads = context.threads](const StepScalars&) {
    const auto shifted = [&](Operand operand, std::int64_t elements) {
      const std::int64_t size = bytes_of(operand.bf16 ? DType::bf16 : DType::f32);
      return Operand{static_cast<char*>(operand.data) + elements * size, operand.bf16};
    };
    parallel_items(threads, repeats, [&](std::int64_t item, int) {
      CombineArgs own = args;
      own.x = shifted(args.x, item * period);
      own.out = shifted(args.out, item * period);
      kernels.combine(own, 0, period);
    });
  };
}

BoundOp bind(const AddPositionsBackward& op, const Context& context) {
  const Tensor& dy = context.tensor(op.dy);
  BoundOp stream, positions;
  if (op.dx.exists()) {
    stream = bind_combine(context,
                          {context.operand(op.dy),
                           {},
                           context.operand(op.dx),
                           1,
                           0,
                           op.dx_mode == GradMode::accumulate},
                          dy.size());
  }
  if (op.d_positions.exists()) {
    positions =
        bind_period_sum(context, context.operand(op.dy), context.floats(op.d_positions), dy.rows,
                        dy.cols, context.tensor(op.d_positions).rows, 1, op.d_positions_mode);
  }
  return [stream, positions](const StepScalars& scalars) {
    if (positions) positions(scalars);
    if (stream) stream(scalars);
  };
}

}  // namespace fathom::engine::cpu
