#include "engine/cpu/cpu_ops.h"

namespace fathom::engine::cpu {
namespace {

BoundOp bind_mask(const Context& context, Operand x, Operand y, std::int64_t size,
                  const DropoutMask& mask, GradMode mode) {
  const DropoutArgs args{
      x, y, mask.probability, mask.seed, mask.stream, 0, mode == GradMode::accumulate};
  return [args, size, &kernels = context.kernels,
          threads = context.threads](const StepScalars& scalars) {
    DropoutArgs own = args;
    own.draw = scalars.draw;
    parallel_ranges(threads, size, 64, [&](std::int64_t begin, std::int64_t end) {
      kernels.dropout(own, begin, end);
    });
  };
}

}  // namespace

BoundOp bind(const Dropout& op, const Context& context) {
  return bind_mask(context, context.operand(op.x), context.operand(op.y),
                   context.tensor(op.y).size(), op.mask, GradMode::overwrite);
}

BoundOp bind(const DropoutBackward& op, const Context& context) {
  return bind_mask(context, context.operand(op.dy), context.operand(op.dx),
                   context.tensor(op.dx).size(), op.mask, op.mode);
}

}  // namespace fathom::engine::cpu
