// KeyMap::sort: one task for each sequence and key head, whose keys and values are gathered in f32.
#include "engine/ops/keys/keys_sort_cpu.h"
#include "engine/bf16.h"
#include "engine/cpu/cpu_ops.h"

namespace fathom::engine::cpu {
namespace {

float value_at(const Operand& x, std::int64_t at) {
  return x.bf16 ? from_bf16(static_cast<const std::uint16_t*>(x.data)[at])
                : static_cast<const float*>(x.data)[at];
}
void put_at(const Operand& x, std::int64_t at, float value) {
  if (x.bf16) {
    static_cast<std::uint16_t*>(x.data)[at] = to_bf16(value);
  } else {
    static_cast<float*>(x.data)[at] = value;
  }
}

/// Where the key and value of position t are.
struct SortedHead {
  KeyShape shape;
  std::int64_t b, g;

  std::int64_t place(std::int64_t t, std::int64_t c) const {
    const std::int64_t head = (c < shape.head_size ? shape.key_column() : shape.value_column()) +
                              g * shape.head_size + c % shape.head_size;
    return (b * shape.context + t) * shape.qkv_cols() + head;
  }
  void gather(const Operand& x, float* out) const {
    for (std::int64_t t = 0; t < shape.context; ++t) {
      for (std::int64_t c = 0; c < 2 * shape.head_size; ++c) *out++ = value_at(x, place(t, c));
    }
  }
  void scatter(const float* from, const Operand& x) const {
    for (std::int64_t t = 0; t < shape.context; ++t) {
      for (std::int64_t c = 0; c < 2 * shape.head_size; ++c) put_at(x, place(t, c), *from++);
    }
  }
  /// Queries are copied unchanged, by one task of each sequence.
  void copy_queries(const Operand& from, const Operand& to) const {
    for (std::int64_t t = 0; g == 0 && t < shape.context; ++t) {
      const std::int64_t row = (b * shape.context + t) * shape.qkv_cols();
      for (std::int64_t c = 0; c < shape.key_column(); ++c) {
        put_at(to, row + c, value_at(from, row + c));
      }
    }
  }
};

std::shared_ptr<std::vector<BlockSorter<float>>> sorters(const KeyShape& shape, int threads) {
  return std::make_shared<std::vector<BlockSorter<float>>>(static_cast<std::size_t>(threads),
                                                           BlockSorter<float>(shape));
}

}  // namespace

BoundOp bind_sort(const MapKeys& op, const Context& context) {
  const KeyShape& s = op.shape;
  const std::int64_t floats = s.context * 2 * s.head_size;
  context.scratch->reserve(2 * floats * context.threads);
  return [s, floats, x = context.operand(op.qkv), y = context.operand(op.y),
          weight = context.floats(op.weight), threads = context.threads, scratch = context.scratch,
          own = sorters(s, context.threads)](const StepScalars&) {
    parallel_items(threads, s.batch * s.key_heads, [&](std::int64_t item, int thread) {
      const SortedHead head{s, item / s.key_heads, item % s.key_heads};
      float* rows = scratch->data() + 2 * floats * thread;
      head.gather(x, rows);
      (*own)[static_cast<std::size_t>(thread)].forward(rows, weight + head.g * s.head_size,
                                                       s.key_heads * s.head_size, rows + floats);
      head.scatter(rows + floats, y);
      head.copy_queries(x, y);
    });
  };
}

BoundOp bind_sort(const MapKeysBackward& op, const Context& context) {
  const KeyShape& s = op.shape;
  const std::int64_t floats = s.context * 2 * s.head_size, size = context.tensor(op.weight).size();
  context.scratch->reserve(3 * floats * context.threads + s.batch * size);
  return [s, floats, size, x = context.operand(op.qkv), dy = context.operand(op.dy),
          dx = context.operand(op.d_qkv), weight = context.floats(op.weight),
          d_weight = context.floats(op.d_weight),
          accumulate = op.d_weight_mode == GradMode::accumulate, threads = context.threads,
          scratch = context.scratch, own = sorters(s, context.threads),
          &kernels = context.kernels](const StepScalars&) {
    float* parts = scratch->data() + 3 * floats * threads;
    parallel_items(threads, s.batch * s.key_heads, [&](std::int64_t item, int thread) {
      const SortedHead head{s, item / s.key_heads, item % s.key_heads};
      float* rows = scratch->data() + 3 * floats * thread;
      head.gather(x, rows);
      head.gather(dy, rows + floats);
      const std::int64_t column = head.g * s.head_size;
      (*own)[static_cast<std::size_t>(thread)].backward(
          rows, rows + floats, weight + column, s.key_heads * s.head_size, rows + 2 * floats,
          parts + head.b * size + column);
      head.scatter(rows + 2 * floats, dx);
      head.copy_queries(dy, dx);
    });
    if (d_weight == nullptr) return;
    kernels.column_sum({{parts, false}, d_weight, s.batch, size, 1, 1.0f, accumulate}, 0, size);
  };
}

}  // namespace fathom::engine::cpu
