// Attention in blocks of 64 queries by 64 keys with an online softmax (arXiv 2205.14135): one task
// is one sequence and one key head with all the query heads that share it.
//
// Scratch of a task holds the head's keys and values in f32, both as rows [T, K] and transposed
// [K, T], padded with zeros to whole blocks and vectors, so that every product below is one plain
// row-times-matrix kernel.
#include "engine/cpu/simd.h"

namespace fathom::engine::cpu::FATHOM_ISA {
namespace {

constexpr std::int64_t kBlock = 64;
constexpr float kMasked = -1e30f;
constexpr float kEmptyTop = -1e29f;  // above kMasked, so that a masked row sums to zero

std::int64_t padded(std::int64_t size, std::int64_t unit) {
  return (size + unit - 1) / unit * unit;
}

/// Which part of a product of a block on the diagonal is needed under a causal mask.
enum class Part { whole, columns_upto_row, depth_upto_row, depth_from_row };

template <int kRows, int kVecs>
inline void tile(std::int64_t k_begin, std::int64_t k_end, const float* a, std::int64_t a_row,
                 std::int64_t a_depth, const float* b, std::int64_t b_row, float* c,
                 std::int64_t c_row, bool accumulate) {
  Vec sums[kRows][kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) {
      sums[i][j] = accumulate ? load(c + i * c_row + j * kLanes) : Vec{};
    }
  }
  for (std::int64_t k = k_begin; k < k_end; ++k) {
    Vec right[kVecs];
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) right[j] = load(b + k * b_row + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Vec left = splat(a[i * a_row + k * a_depth]);
#pragma GCC unroll 16
      for (int j = 0; j < kVecs; ++j) sums[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) store(c + i * c_row + j * kLanes, sums[i][j]);
  }
}

constexpr int kTileRows = kLanes == 16 ? 8 : 4;

/// C[64, columns] (+)= A[64, depth] B[depth, columns]; A by its two strides, columns a multiple of
/// kLanes.
void product(std::int64_t columns, std::int64_t depth, const float* a, std::int64_t a_row,
             std::int64_t a_depth, const float* b, std::int64_t b_row, float* c, std::int64_t c_row,
             bool accumulate, Part part) {
  for (std::int64_t i = 0; i < kBlock; i += kTileRows) {
    const std::int64_t edge = i + kTileRows;
    const std::int64_t k_begin = part == Part::depth_from_row ? i : 0;
    const std::int64_t k_end = part == Part::depth_upto_row && edge < depth ? edge : depth;
    const std::int64_t last = part == Part::columns_upto_row && edge < columns ? edge : columns;
    std::int64_t j = 0;
    for (; j + kLanes < last; j += 2 * kLanes) {
      tile<kTileRows, 2>(k_begin, k_end, a + i * a_row, a_row, a_depth, b + j, b_row,
                         c + i * c_row + j, c_row, accumulate);
    }
    if (j < last) {
      tile<kTileRows, 1>(k_begin, k_end, a + i * a_row, a_row, a_depth, b + j, b_row,
                         c + i * c_row + j, c_row, accumulate);
    }
  }
}

Vec feature(Vec x) {
  return select(x > Vec{}, x + 1.0f, exp(x));
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

  void turn(float* row, std::int64_t t, float direction) const {
    const float* cosines = args.turns + t * size;
    const float* sines = cosines + size / 2;
    for (std::int64_t i = 0; i < size / 2; ++i) {
      const float a = row[i], b = row[i + size / 2], s = direction * sines[i];
      row[i] = a * cosines[i] - b * s;
      row[i + size / 2] = a * s + b * cosines[i];
    }
  }

  /// Rows [first, first + count) of `source`, one head wide at `column`, as f32; rows beyond the
  /// context are zero. Queries and keys are turned and, for linear attention, mapped.
  template <class T>
  void gather(const T* source, std::int64_t cols, std::int64_t column, std::int64_t first,
              std::int64_t count, bool as_key, bool mapped, float* out) const {
    for (std::int64_t r = 0; r < count; ++r) {
      float* row = out + r * stride;
      const std::int64_t t = first + r;
      for (std::int64_t i = 0; i < stride; i += kLanes) store(row + i, Vec{});
      if (t >= context) continue;
      const T* from = source + (sequence * context + t) * cols + column;
      for_vectors(size, [&](std::int64_t i, std::int64_t n) {
        store_upto(row + i, load_upto(from + i, n), n);
      });
      if (as_key && args.turns) turn(row, t, 1.0f);
      if (!mapped || args.weighting != Weighting::linear) continue;
      for_vectors(size, [&](std::int64_t i, std::int64_t n) {
        store_upto(row + i, feature(load_upto(row + i, n)), n);
      });
    }
  }

  void transpose(const float* rows, float* out) const {
    for (std::int64_t t = 0; t < padded_context; ++t) {
      for (std::int64_t c = 0; c < size; ++c) out[c * padded_context + t] = rows[t * stride + c];
    }
  }

  /// First and last key block that a query block needs.
  std::int64_t first_block(std::int64_t query) const {
    if (args.window == 0) return 0;
    const std::int64_t key = query - args.window + 1;
    return key > 0 ? key / kBlock : 0;
  }
  std::int64_t end_block(std::int64_t query) const {
    const std::int64_t all = padded_context / kBlock;
    std::int64_t last = all;
    if (args.mask != Mask::bidirectional) last = query / kBlock + 1;
    if (args.window > 0) {
      const std::int64_t key = query + kBlock - 1 + args.window - 1;
      const std::int64_t limit = key / kBlock + 1;
      last = limit < last ? limit : last;
    }
    return last < all ? last : all;
  }
  bool fully_allowed(std::int64_t query, std::int64_t key) const {
    if (key + kBlock > context || query + kBlock > context) return false;
    if (args.mask != Mask::bidirectional && key + kBlock > query) return false;
    if (args.window == 0) return true;
    const std::int64_t before = query + kBlock - 1 - key, after = key + kBlock - 1 - query;
    return before < args.window && after < args.window;
  }
  bool allowed(std::int64_t i, std::int64_t j) const {
    if (j >= context || i >= context) return false;
    if (args.mask == Mask::causal && j > i) return false;
    if (args.mask == Mask::strict && j >= i) return false;
    const std::int64_t distance = i > j ? i - j : j - i;
    return args.window == 0 || distance < args.window;
  }
  Part diagonal(std::int64_t query, std::int64_t key, Part part) const {
    return query == key && args.mask != Mask::bidirectional ? part : Part::whole;
  }
  void mask(float* scores, std::int64_t query, std::int64_t key, float value) const {
    for (std::int64_t i = 0; i < kBlock; ++i) {
      for (std::int64_t j = 0; j < kBlock; ++j) {
        if (!allowed(query + i, key + j)) scores[i * kBlock + j] = value;
      }
    }
  }
};

/// Turns scores into weights relative to the running top, and rescales what came before.
void online_softmax(float* scores, float* tops, float* sums, float* y, std::int64_t stride) {
  for (std::int64_t i = 0; i < kBlock; ++i) {
    float* row = scores + i * kBlock;
    Vec highest = load(row);
    for (std::int64_t j = kLanes; j < kBlock; j += kLanes) highest = max(highest, load(row + j));
    const float block_top = largest(highest);
    const float top = block_top > tops[i] ? block_top : tops[i];
    Vec total{};
    for (std::int64_t j = 0; j < kBlock; j += kLanes) {
      const Vec p = exp(load(row + j) - top);
      store(row + j, p);
      total += p;
    }
    if (top != tops[i]) {
      const float fade = exp(splat(tops[i] - top))[0];
      sums[i] *= fade;
      for (std::int64_t c = 0; c < stride; c += kLanes)
        store(y + i * stride + c, load(y + i * stride + c) * fade);
      tops[i] = top;
    }
    sums[i] += sum(total);
  }
}

void add_row_sums(const float* scores, float* sums) {
  for (std::int64_t i = 0; i < kBlock; ++i) {
    Vec total{};
    for (std::int64_t j = 0; j < kBlock; j += kLanes) total += load(scores + i * kBlock + j);
    sums[i] += sum(total);
  }
}

template <class T>
void forward_query_block(const Head& head, std::int64_t h, std::int64_t query, float* scratch,
                         const float* keys_t, const float* values) {
  const AttentionArgs& args = head.args;
  float* q = scratch;
  float* y = q + kBlock * head.stride;
  float* scores = y + kBlock * head.stride;
  float* tops = scores + kBlock * kBlock;
  float* sums = tops + kBlock;
  head.gather(static_cast<const T*>(args.qkv.data), head.qkv_cols(), h * head.size, query, kBlock,
              true, true, q);
  const float scale = args.weighting == Weighting::linear ? 1.0f : args.scale;
  for (std::int64_t i = 0; i < kBlock * head.stride; i += kLanes) {
    store(q + i, load(q + i) * scale);
    store(y + i, Vec{});
  }
  for (std::int64_t i = 0; i < kBlock; ++i) {
    tops[i] = kEmptyTop;
    sums[i] = 0;
  }
  const bool softmax = args.weighting == Weighting::softmax;
  for (std::int64_t block = head.first_block(query); block < head.end_block(query); ++block) {
    const std::int64_t key = block * kBlock;
    product(kBlock, head.size, q, head.stride, 1, keys_t + key, head.padded_context, scores, kBlock,
            false, head.diagonal(query, key, Part::columns_upto_row));
    if (!head.fully_allowed(query, key)) head.mask(scores, query, key, softmax ? kMasked : 0.0f);
    if (softmax) online_softmax(scores, tops, sums, y, head.stride);
    if (args.weighting == Weighting::linear) add_row_sums(scores, sums);
    product(head.stride, kBlock, scores, kBlock, 1, values + key * head.stride, head.stride, y,
            head.stride, true, head.diagonal(query, key, Part::depth_upto_row));
  }
  for (std::int64_t i = 0; i < kBlock && query + i < head.context; ++i) {
    const bool divided = args.weighting != Weighting::none;
    const float factor = !divided ? 1.0f : (sums[i] > 0 ? 1.0f / sums[i] : 0.0f);
    float stat = 0;
    if (softmax && sums[i] > 0) stat = tops[i] + __builtin_logf(sums[i]);
    if (args.weighting == Weighting::linear) stat = sums[i];
    args.stats[(head.sequence * args.heads + h) * head.context + query + i] = stat;
    T* out = static_cast<T*>(args.y.data) +
             ((head.sequence * head.context + query + i) * args.heads + h) * head.size;
    for_vectors(head.size, [&](std::int64_t c, std::int64_t n) {
      store_upto(out + c, load_part(y + i * head.stride + c, n) * factor, n);
    });
  }
}

/// scores -> weights; d (holding p = dy . v) -> ds. See ops/attention.h.
void weights_and_slopes(const Head& head, float* scores, float* d, const float* stats,
                        const float* deltas, std::int64_t query, std::int64_t key) {
  const Weighting weighting = head.args.weighting;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const float stat = stats[i];
    const float inverse = weighting == Weighting::linear && stat > 0 ? 1.0f / stat : 0.0f;
    for (std::int64_t j = 0; j < kBlock; j += kLanes) {
      const std::int64_t at = i * kBlock + j;
      const Vec s = load(scores + at), p = load(d + at);
      if (weighting == Weighting::softmax) {
        const Vec a = exp(s - stat);
        store(scores + at, a);
        store(d + at, a * (p - deltas[i]));
      } else if (weighting == Weighting::linear) {
        store(scores + at, s * inverse);
        store(d + at, (p - deltas[i]) * inverse);
      }
    }
  }
  if (!head.fully_allowed(query, key)) {
    head.mask(scores, query, key, 0.0f);
    head.mask(d, query, key, 0.0f);
  }
}

/// Writes gradients of turned, mapped rows back to the columns they came from.
template <class T>
void scatter(const Head& head, float* gradient, const float* mapped, std::int64_t column,
             std::int64_t first, std::int64_t count, float factor, bool as_key) {
  for (std::int64_t r = 0; r < count && first + r < head.context; ++r) {
    float* row = gradient + r * head.stride;
    if (as_key && head.args.weighting == Weighting::linear) {
      // f = elu + 1: the slope is 1 where f > 1 and f itself elsewhere.
      for (std::int64_t c = 0; c < head.size; ++c) {
        const float f = mapped[r * head.stride + c];
        row[c] *= f > 1.0f ? 1.0f : f;
      }
    }
    if (as_key && head.args.turns) head.turn(row, first + r, -1.0f);
    T* out = static_cast<T*>(head.args.d_qkv.data) +
             (head.sequence * head.context + first + r) * head.qkv_cols() + column;
    for_vectors(head.size, [&](std::int64_t c, std::int64_t n) {
      store_upto(out + c, load_part(row + c, n) * factor, n);
    });
  }
}

struct BackwardScratch {
  float *keys, *values, *keys_t, *values_t, *d_keys, *d_values;
  float *q, *dy, *y, *dq, *scores, *slopes, *stats, *deltas;

  BackwardScratch(const Head& head, float* memory) {
    const std::int64_t rows = head.padded_context * head.stride, block = kBlock * head.stride;
    const auto cut = [&](std::int64_t size) {
      float* place = memory;
      memory += size;
      return place;
    };
    keys = cut(rows);
    values = cut(rows);
    keys_t = cut(rows);
    values_t = cut(rows);
    d_keys = cut(rows);
    d_values = cut(rows);
    q = cut(block);
    dy = cut(block);
    y = cut(block);
    dq = cut(block);
    scores = cut(kBlock * kBlock);
    slopes = cut(kBlock * kBlock);
    stats = cut(kBlock);
    deltas = cut(kBlock);
  }
};

template <class T>
void backward_query_block(const Head& head, std::int64_t h, std::int64_t query,
                          const BackwardScratch& s) {
  const AttentionArgs& args = head.args;
  const std::int64_t stride = head.stride;
  head.gather(static_cast<const T*>(args.qkv.data), head.qkv_cols(), h * head.size, query, kBlock,
              true, true, s.q);
  const std::int64_t y_cols = args.heads * head.size;
  head.gather(static_cast<const T*>(args.dy.data), y_cols, h * head.size, query, kBlock, false,
              false, s.dy);
  head.gather(static_cast<const T*>(args.y.data), y_cols, h * head.size, query, kBlock, false,
              false, s.y);
  const float scale = args.weighting == Weighting::linear ? 1.0f : args.scale;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    Vec delta{};
    for (std::int64_t c = 0; c < stride; c += kLanes) {
      const std::int64_t at = i * stride + c;
      delta += load(s.dy + at) * load(s.y + at);
      store(s.q + at, load(s.q + at) * scale);
      store(s.dq + at, Vec{});
    }
    s.deltas[i] = sum(delta);
    const std::int64_t row = (head.sequence * args.heads + h) * head.context + query + i;
    s.stats[i] = query + i < head.context ? args.stats[row] : 0.0f;
  }
  for (std::int64_t block = head.first_block(query); block < head.end_block(query); ++block) {
    const std::int64_t key = block * kBlock;
    const Part columns = head.diagonal(query, key, Part::columns_upto_row);
    product(kBlock, head.size, s.q, stride, 1, s.keys_t + key, head.padded_context, s.scores,
            kBlock, false, columns);
    product(kBlock, head.size, s.dy, stride, 1, s.values_t + key, head.padded_context, s.slopes,
            kBlock, false, columns);
    weights_and_slopes(head, s.scores, s.slopes, s.stats, s.deltas, query, key);
    product(stride, kBlock, s.slopes, kBlock, 1, s.keys + key * stride, stride, s.dq, stride, true,
            head.diagonal(query, key, Part::depth_upto_row));
    const Part from_row = head.diagonal(query, key, Part::depth_from_row);
    product(stride, kBlock, s.slopes, 1, kBlock, s.q, stride, s.d_keys + key * stride, stride, true,
            from_row);
    product(stride, kBlock, s.scores, 1, kBlock, s.dy, stride, s.d_values + key * stride, stride,
            true, from_row);
  }
  scatter<T>(head, s.dq, s.q, h * head.size, query, kBlock, scale, true);
}

}  // namespace

std::int64_t attention_scratch_floats(std::int64_t context, std::int64_t head_size) {
  const std::int64_t stride = padded(head_size, kLanes);
  return 6 * padded(context, kBlock) * stride + 4 * kBlock * stride + 2 * kBlock * kBlock +
         4 * kBlock;
}

void attention_forward(const AttentionArgs& args, std::int64_t task, float* scratch) {
  const Head head(args, task);
  const std::int64_t rows = head.padded_context * head.stride;
  float* keys = scratch;
  float* values = keys + rows;
  float* keys_t = values + rows;
  with_type(args.qkv, [&](auto type) {
    using T = ElementOf<decltype(type)>;
    const T* qkv = static_cast<const T*>(args.qkv.data);
    head.gather(qkv, head.qkv_cols(), head.key_column(), 0, head.padded_context, true, true, keys);
    head.gather(qkv, head.qkv_cols(), head.value_column(), 0, head.padded_context, false, false,
                values);
    head.transpose(keys, keys_t);
    for (std::int64_t g = 0; g < head.group(); ++g) {
      for (std::int64_t query = 0; query < head.context; query += kBlock) {
        forward_query_block<T>(head, head.key_head * head.group() + g, query, keys_t + rows, keys_t,
                               values);
      }
    }
  });
}

void attention_backward(const AttentionArgs& args, std::int64_t task, float* scratch) {
  const Head head(args, task);
  const std::int64_t rows = head.padded_context * head.stride;
  const BackwardScratch s(head, scratch);
  with_type(args.qkv, [&](auto type) {
    using T = ElementOf<decltype(type)>;
    const T* qkv = static_cast<const T*>(args.qkv.data);
    head.gather(qkv, head.qkv_cols(), head.key_column(), 0, head.padded_context, true, true,
                s.keys);
    head.gather(qkv, head.qkv_cols(), head.value_column(), 0, head.padded_context, false, false,
                s.values);
    head.transpose(s.keys, s.keys_t);
    head.transpose(s.values, s.values_t);
    for (std::int64_t i = 0; i < rows; i += kLanes) {
      store(s.d_keys + i, Vec{});
      store(s.d_values + i, Vec{});
    }
    for (std::int64_t g = 0; g < head.group(); ++g) {
      for (std::int64_t query = 0; query < head.context; query += kBlock) {
        backward_query_block<T>(head, head.key_head * head.group() + g, query, s);
      }
    }
    scatter<T>(head, s.d_keys, s.keys, head.key_column(), 0, head.padded_context, 1.0f, true);
    scatter<T>(head, s.d_values, nullptr, head.value_column(), 0, head.padded_context, 1.0f, false);
  });
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
