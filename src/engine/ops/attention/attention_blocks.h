// What the kernels of attention share: sizes and places of one head of one sequence, loading and
// storing its rows, and which keys a query sees. Only for ops/attention*_simd.cpp.
#pragma once

#include "engine/cpu/simd.h"

namespace fathom::engine::cpu::FATHOM_ISA {

inline constexpr std::int64_t kBlock = 64;
inline constexpr float kMasked = -1e30f;
inline constexpr float kNormEpsilon = 1e-5f;  // of normalised attention
inline constexpr float kEmptyTop = -1e29f;    // above kMasked, so that a masked row sums to zero

static inline std::int64_t padded(std::int64_t size, std::int64_t unit) {
  return (size + unit - 1) / unit * unit;
}

/// Which part of a GEMM of a block on the diagonal is needed under a causal mask.
enum class Part { whole, columns_upto_row, columns_from_row, depth_upto_row, depth_from_row };

static inline Vec feature(Vec x) {
  return select(x > Vec{}, x + 1.0f, exp(x));
}

/// [64][columns] -> [columns][64]
static inline void transpose_block(const float* rows, std::int64_t columns, float* out) {
  for (std::int64_t r = 0; r < kBlock; r += kLanes) {
    for (std::int64_t c = 0; c < columns; c += kLanes) {
      Vec square[kLanes];
      for (std::int64_t k = 0; k < kLanes; ++k) square[k] = load(rows + (r + k) * columns + c);
      transpose(square);
      for (std::int64_t k = 0; k < kLanes; ++k) store(out + (c + k) * kBlock + r, square[k]);
    }
  }
}

/// Sizes and places common to both directions.
struct Head {
  const AttentionArgs& args;
  std::int64_t sequence, key_head;
  std::int64_t size, stride, context, padded_context;  // stride: padded head size

  Head(const AttentionArgs& arguments, std::int64_t task)
      : args(arguments),
        sequence(task / arguments.key_heads),
        key_head(task % arguments.key_heads),
        size(arguments.head_size),
        stride(padded(arguments.head_size, kLanes)),
        context(arguments.context),
        padded_context(padded(arguments.context, kBlock)) {}

  std::int64_t qkv_cols() const { return (args.heads + 2 * args.key_heads) * size; }
  std::int64_t key_column() const { return (args.heads + key_head) * size; }
  std::int64_t value_column() const { return (args.heads + args.key_heads + key_head) * size; }
  std::int64_t group() const { return args.heads / args.key_heads; }
  bool stopped() const { return args.stop != nullptr && args.stop(args.stop_context); }

  void rotate(float* row, std::int64_t t, float direction) const {
    const float* cosines = args.rotations + t * size;
    const float* sines = cosines + size / 2;
    for (std::int64_t i = 0; i < size / 2; ++i) {
      const float a = row[i], b = row[i + size / 2], s = direction * sines[i];
      row[i] = a * cosines[i] - b * s;
      row[i + size / 2] = a * s + b * cosines[i];
    }
  }

  /// Rows [first, first + count) of `source`, one head wide at `column`, as f32; rows beyond the
  /// context are zero. Queries and keys are rotated and, for linear attention, mapped.
  template <class T>
  void gather(const T* source, std::int64_t cols, std::int64_t column, std::int64_t first,
              std::int64_t count, bool as_key, bool mapped, float* out) const {
    for (std::int64_t r = 0; r < count; ++r) {
      float* row = out + r * stride;
      const std::int64_t t = first + r;
      if (t >= context || size < stride) {
        for (std::int64_t i = 0; i < stride; i += kLanes) store(row + i, Vec{});
      }
      if (t >= context) continue;
      const T* from = source + (sequence * context + t) * cols + column;
      for_vectors(size, [&](std::int64_t i, std::int64_t n) {
        store_upto(row + i, load_upto(from + i, n), n);
      });
      if (as_key && args.rotations) rotate(row, t, 1.0f);
      if (!mapped || args.kind != AttentionKind::linear) continue;
      for_vectors(size, [&](std::int64_t i, std::int64_t n) {
        store_upto(row + i, feature(load_upto(row + i, n)), n);
      });
    }
  }

  /// Each block of 64 rows becomes [stride][64], so that a block is contiguous in the cache.
  void transpose(const float* rows, float* out) const {
    for (std::int64_t block = 0; block < padded_context; block += kBlock) {
      transpose_block(rows + block * stride, stride, out + block * stride);
    }
  }

  /// First and last key block that a query block needs.
  std::int64_t first_block(std::int64_t query) const {
    if (args.window == 0 || args.views) return 0;
    const std::int64_t key = query - args.window + 1;
    return key > 0 ? key / kBlock : 0;
  }
  std::int64_t end_block(std::int64_t query) const {
    const std::int64_t all = padded_context / kBlock;
    std::int64_t last = all;
    if (args.mask != MaskKind::bidirectional) last = query / kBlock + 1;
    if (args.window > 0 && !args.views) {
      const std::int64_t key = query + kBlock - 1 + args.window - 1;
      const std::int64_t limit = key / kBlock + 1;
      last = limit < last ? limit : last;
    }
    return last < all ? last : all;
  }
  std::int64_t block_index(std::int64_t query, std::int64_t key) const {
    return query / kBlock * (padded_context / kBlock) + key / kBlock;
  }
  /// No query of the block sees any key of the other.
  bool hidden(std::int64_t query, std::int64_t key) const {
    return args.views && args.views[block_index(query, key)] == BlockView::none;
  }
  bool fully_allowed(std::int64_t query, std::int64_t key) const {
    if (args.views) return args.views[block_index(query, key)] == BlockView::all;
    if (key + kBlock > context || query + kBlock > context) return false;
    if (args.mask != MaskKind::bidirectional && key + kBlock > query) return false;
    if (args.window == 0) return true;
    const std::int64_t before = query + kBlock - 1 - key, after = key + kBlock - 1 - query;
    return before < args.window && after < args.window;
  }
  /// The keys [begin, end) that query i may see, counted from `key`.
  struct Range {
    std::int64_t begin, end;
  };
  Range allowed(std::int64_t i, std::int64_t key) const {
    std::int64_t begin = 0, end = context;
    if (args.mask == MaskKind::causal) end = i + 1;
    if (args.mask == MaskKind::strict) end = i;
    if (args.window > 0 && i - args.window + 1 > begin) begin = i - args.window + 1;
    if (args.window > 0 && i + args.window < end) end = i + args.window;
    if (end > context) end = context;
    if (i >= context) end = 0;
    return {begin - key, end - key};
  }
  /// How many keys of the block at `key` query i sees.
  std::int64_t seen(std::int64_t i, std::int64_t key) const {
    if (args.visible) {
      return __builtin_popcountll(args.visible[i * (padded_context / kBlock) + key / kBlock]);
    }
    const Range range = allowed(i, key);
    const std::int64_t begin = range.begin > 0 ? range.begin : 0;
    const std::int64_t end = range.end < kBlock ? range.end : kBlock;
    return end > begin ? end - begin : 0;
  }
  Part diagonal(std::int64_t query, std::int64_t key, Part part) const {
    return query == key && args.mask != MaskKind::bidirectional ? part : Part::whole;
  }
  void mask(float* scores, std::int64_t query, std::int64_t key, float value) const {
    if (args.visible) return mask_bits(scores, query, key, value);
    for (std::int64_t i = 0; i < kBlock; ++i) {
      const Range range = allowed(query + i, key);
      float* row = scores + i * kBlock;
      for (std::int64_t j = 0; j < kBlock; j += kLanes) {
        store(row + j, select(inside(range, j), load(row + j), splat(value)));
      }
    }
  }
  void mask_bits(float* scores, std::int64_t query, std::int64_t key, float value) const {
    const std::int64_t words = padded_context / kBlock;
    for (std::int64_t i = 0; i < kBlock; ++i) {
      const std::uint64_t word = args.visible[(query + i) * words + key / kBlock];
      float* row = scores + i * kBlock;
      for (std::int64_t j = 0; j < kBlock; j += kLanes) {
        const auto bits = static_cast<std::int32_t>(static_cast<std::uint32_t>(word >> j));
        const VecI seen = ((bits >> lane_numbers()) & 1) != 0;
        store(row + j, select(seen, load(row + j), splat(value)));
      }
    }
  }
  static VecI inside(Range range, std::int64_t j) {
    const VecI at = lane_numbers() + static_cast<std::int32_t>(j);
    return (at >= static_cast<std::int32_t>(range.begin)) &
           (at < static_cast<std::int32_t>(range.end));
  }
};

/// Writes gradients of rotated, mapped rows back to the columns they came from.
template <class T>
void scatter(const Head& head, float* gradient, const float* mapped, std::int64_t column,
             std::int64_t first, std::int64_t count, float factor, bool as_key) {
  for (std::int64_t r = 0; r < count && first + r < head.context; ++r) {
    float* row = gradient + r * head.stride;
    if (as_key && head.args.kind == AttentionKind::linear) {
      // f = elu + 1: the slope is 1 where f > 1 and f itself elsewhere.
      for (std::int64_t c = 0; c < head.size; ++c) {
        const float f = mapped[r * head.stride + c];
        row[c] *= f > 1.0f ? 1.0f : f;
      }
    }
    if (as_key && head.args.rotations) head.rotate(row, first + r, -1.0f);
    T* out = static_cast<T*>(head.args.d_qkv.data) +
             (head.sequence * head.context + first + r) * head.qkv_cols() + column;
    for_vectors(head.size, [&](std::int64_t c, std::int64_t n) {
      store_upto(out + c, load(row + c) * factor, n);
    });
  }
}

/// Attention of features over all keys of the mask, by states (attention_features_simd.cpp).
static inline bool sums_states(const AttentionArgs& args) {
  const bool mapped = args.kind == AttentionKind::linear || args.kind == AttentionKind::performer;
  return mapped && args.window == 0 && !args.views;
}
std::int64_t feature_scratch_floats(const AttentionArgs& args);
void feature_forward(const AttentionArgs& args, std::int64_t task, float* scratch);
void feature_backward(const AttentionArgs& args, std::int64_t task, float* scratch);

/// Attention of bf16 with a softmax, by GEMMs of bf16 pairs; only where the instructions exist.
inline constexpr std::int64_t kLargestHead = 512;
static inline bool takes_pairs(const AttentionArgs& args) {
  return args.qkv.bf16 && args.kind == AttentionKind::softmax && args.scale > 0 &&
         args.head_size <= kLargestHead && !args.views;
}
void attention_forward_pairs(const AttentionArgs& args, std::int64_t task, float* scratch);
void attention_backward_pairs(const AttentionArgs& args, std::int64_t task, float* scratch);

}  // namespace fathom::engine::cpu::FATHOM_ISA
