#include <cmath>
#include <vector>

#include "engine/cpu/cpu_ops.h"
#include "engine/ops/attention/attention_pattern.h"

namespace fathom::engine::cpu {

namespace {

/// Row t: cos(t w_i) for i < K/2, then sin(t w_i), w_i = base^(-2i/K).
std::shared_ptr<const std::vector<float>> rotary_table(const AttentionShape& s) {
  auto rotations = std::make_shared<std::vector<float>>();
  if (s.rotary_base <= 0) return rotations;
  const std::int64_t half = s.head_size / 2;
  rotations->resize(static_cast<std::size_t>(s.context * s.head_size));
  for (std::int64_t t = 0; t < s.context; ++t) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(t) * std::pow(static_cast<double>(s.rotary_base),
                                                             -2.0 * static_cast<double>(i) /
                                                                 static_cast<double>(s.head_size));
      const auto at = static_cast<std::size_t>(t * s.head_size + i);
      (*rotations)[at] = static_cast<float>(std::cos(angle));
      (*rotations)[at + static_cast<std::size_t>(half)] = static_cast<float>(std::sin(angle));
    }
  }
  return rotations;
}

AttentionArgs common_args(const AttentionShape& s) {
  AttentionArgs args{};
  args.batch = s.batch;
  args.context = s.context;
  args.heads = s.heads;
  args.key_heads = s.key_heads;
  args.head_size = s.head_size;
  args.window = s.window;
  args.kind = s.kind;
  args.mask = s.mask;
  args.scale = s.scale;
  return args;
}

using Task = void (*)(const AttentionArgs&, std::int64_t, float*);

BoundOp bind_tasks(const Context& context, const AttentionShape& s, AttentionArgs args, Task task) {
  args.stop = context.stop;
  args.stop_context = context.stop_context;
  const auto rotations = rotary_table(s);
  args.rotations = rotations->empty() ? nullptr : rotations->data();
  std::shared_ptr<const AttentionPattern> pattern;
  if (s.has_pattern()) {
    pattern = std::make_shared<const AttentionPattern>(s);
    args.visible = pattern->words().data();
    args.views = pattern->views().data();
  }
  const auto directions = std::make_shared<std::vector<float>>();
  if (s.kind == AttentionKind::performer) *directions = feature_directions(s);
  args.directions = directions->data();
  args.features = s.feature_size();
  const std::int64_t floats = (context.kernels.attention_scratch_floats(args) + 63) / 64 * 64;
  context.scratch->reserve(floats * context.threads);
  return [args, task, floats, rotations, pattern, directions, tasks = s.batch * s.key_heads,
          threads = context.threads, scratch = context.scratch](const StepScalars&) {
    parallel_items(threads, tasks, [&](std::int64_t item, int thread) {
      task(args, item, scratch->data() + thread * floats);
    });
  };
}

}  // namespace

BoundOp bind(const Attention& op, const Context& context) {
  AttentionArgs args = common_args(op.shape);
  args.qkv = context.operand(op.qkv);
  args.y = context.operand(op.y);
  args.stats = context.floats(op.stats);
  return bind_tasks(context, op.shape, args, context.kernels.attention_forward);
}

BoundOp bind(const AttentionBackward& op, const Context& context) {
  AttentionArgs args = common_args(op.shape);
  args.qkv = context.operand(op.qkv);
  args.y = context.operand(op.y);
  args.dy = context.operand(op.dy);
  args.d_qkv = context.operand(op.d_qkv);
  args.stats = context.floats(op.stats);
  return bind_tasks(context, op.shape, args, context.kernels.attention_backward);
}

}  // namespace fathom::engine::cpu
