#include "engine/cpu/cpu_ops.h"
#include "engine/ops/keys/keys_sort_cpu.h"

namespace fathom::engine::cpu {
namespace {

KeyArgs key_args(const KeyShape& s, TensorId weight, const Context& context) {
  KeyArgs args{};
  args.weight = context.floats(weight);
  args.weight_rows = context.tensor(weight).rows;
  args.weight_cols = context.tensor(weight).cols;
  args.batch = s.batch;
  args.context = s.context;
  args.heads = s.heads;
  args.key_heads = s.key_heads;
  args.head_size = s.head_size;
  args.map = s.map;
  return args;
}

}  // namespace

BoundOp bind(const MapKeys& op, const Context& context) {
  if (op.shape.map == KeyMap::sort) return bind_sort(op, context);
  KeyArgs args = key_args(op.shape, op.weight, context);
  args.x = context.operand(op.qkv);
  args.y = context.operand(op.y);
  return [args, rows = op.shape.batch * op.shape.context, &kernels = context.kernels,
          threads = context.threads](const StepScalars&) {
    parallel_ranges(threads, rows, 1, [&](std::int64_t begin, std::int64_t end) {
      kernels.map_keys_forward(args, begin, end);
    });
  };
}

BoundOp bind(const MapKeysBackward& op, const Context& context) {
  if (op.shape.map == KeyMap::sort) return bind_sort(op, context);
  KeyArgs args = key_args(op.shape, op.weight, context);
  args.x = context.operand(op.qkv);
  args.dy = context.operand(op.dy);
  args.dx = context.operand(op.d_qkv);
  args.d_weight = context.floats(op.d_weight);
  args.accumulate = op.d_weight_mode == GradMode::accumulate;
  // Each row of the weight, or for `smear` each element, has one thread: a fixed order of sums.
  const std::int64_t parts = op.shape.map == KeyMap::smear ? args.weight_cols : args.weight_rows;
  return [args, parts, rows = op.shape.batch * op.shape.context, &kernels = context.kernels,
          threads = context.threads](const StepScalars&) {
    parallel_ranges(threads, rows, 1, [&](std::int64_t begin, std::int64_t end) {
      kernels.map_keys_backward(args, begin, end);
    });
    if (args.d_weight == nullptr) return;
    parallel_ranges(threads, parts, 1, [&](std::int64_t begin, std::int64_t end) {
      kernels.map_keys_weight(args, begin, end);
    });
  };
}

}  // namespace fathom::engine::cpu
