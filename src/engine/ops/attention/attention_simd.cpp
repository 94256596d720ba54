// Attention in blocks of 64 queries by 64 keys with an online softmax (arXiv 2205.14135): one task
// is one sequence and one key head with all the query heads that share it.
//
// Scratch of a task holds the head's keys and values in f32, both as rows [T, K] and transposed
// [K, T], padded with zeros to whole blocks and vectors, so that every GEMM below is one plain
// row-times-matrix kernel.
#include "engine/ops/attention/attention_blocks.h"

namespace fathom::engine::cpu::FATHOM_ISA {
namespace {

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
void gemm(std::int64_t columns, std::int64_t depth, const float* a, std::int64_t a_row,
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
  const float scale = args.kind == AttentionKind::linear ? 1.0f : args.scale;
  for (std::int64_t i = 0; i < kBlock * head.stride; i += kLanes) {
    store(q + i, load(q + i) * scale);
    store(y + i, Vec{});
  }
  for (std::int64_t i = 0; i < kBlock; ++i) {
    tops[i] = kEmptyTop;
    sums[i] = 0;
  }
  const bool softmax = args.kind == AttentionKind::softmax;
  for (std::int64_t block = head.first_block(query); block < head.end_block(query); ++block) {
    const std::int64_t key = block * kBlock;
    gemm(kBlock, head.size, q, head.stride, 1, keys_t + key * head.stride, kBlock, scores, kBlock,
         false, head.diagonal(query, key, Part::columns_upto_row));
    if (!head.fully_allowed(query, key)) head.mask(scores, query, key, softmax ? kMasked : 0.0f);
    if (softmax) online_softmax(scores, tops, sums, y, head.stride);
    if (args.kind == AttentionKind::linear) add_row_sums(scores, sums);
    gemm(head.stride, kBlock, scores, kBlock, 1, values + key * head.stride, head.stride, y,
         head.stride, true, head.diagonal(query, key, Part::depth_upto_row));
  }
  for (std::int64_t i = 0; i < kBlock && query + i < head.context; ++i) {
    const bool divided = args.kind != AttentionKind::none;
    const float factor = !divided ? 1.0f : (sums[i] > 0 ? 1.0f / sums[i] : 0.0f);
    float stat = 0;
    if (softmax && sums[i] > 0) stat = tops[i] + __builtin_logf(sums[i]);
    if (args.kind == AttentionKind::linear) stat = sums[i];
    args.stats[(head.sequence * args.heads + h) * head.context + query + i] = stat;
    T* out = static_cast<T*>(args.y.data) +
             ((head.sequence * head.context + query + i) * args.heads + h) * head.size;
    for_vectors(head.size, [&](std::int64_t c, std::int64_t n) {
      store_upto(out + c, load(y + i * head.stride + c) * factor, n);
    });
  }
}

/// scores -> weights; d (holding p = dy . v) -> ds. See ops/attention.h.
void weights_and_slopes(const Head& head, float* scores, float* d, const float* stats,
                        const float* deltas, std::int64_t query, std::int64_t key) {
  const AttentionKind kind = head.args.kind;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const float stat = stats[i];
    const float inverse = kind == AttentionKind::linear && stat > 0 ? 1.0f / stat : 0.0f;
    for (std::int64_t j = 0; j < kBlock; j += kLanes) {
      const std::int64_t at = i * kBlock + j;
      const Vec s = load(scores + at), p = load(d + at);
      if (kind == AttentionKind::softmax) {
        const Vec a = exp(s - stat);
        store(scores + at, a);
        store(d + at, a * (p - deltas[i]));
      } else if (kind == AttentionKind::linear) {
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
  const float scale = args.kind == AttentionKind::linear ? 1.0f : args.scale;
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
    gemm(kBlock, head.size, s.q, stride, 1, s.keys_t + key * head.stride, kBlock, s.scores, kBlock,
         false, columns);
    gemm(kBlock, head.size, s.dy, stride, 1, s.values_t + key * stride, kBlock, s.slopes, kBlock,
         false, columns);
    weights_and_slopes(head, s.scores, s.slopes, s.stats, s.deltas, query, key);
    gemm(stride, kBlock, s.slopes, kBlock, 1, s.keys + key * stride, stride, s.dq, stride, true,
         head.diagonal(query, key, Part::depth_upto_row));
    const Part from_row = head.diagonal(query, key, Part::depth_from_row);
    gemm(stride, kBlock, s.slopes, 1, kBlock, s.q, stride, s.d_keys + key * stride, stride, true,
         from_row);
    gemm(stride, kBlock, s.scores, 1, kBlock, s.dy, stride, s.d_values + key * stride, stride, true,
         from_row);
  }
  scatter<T>(head, s.dq, s.q, h * head.size, query, kBlock, scale, true);
}

}  // namespace

std::int64_t attention_scratch_floats(std::int64_t context, std::int64_t head_size) {
  const std::int64_t stride = padded(head_size, 2 * kLanes);  // as attention_pairs_simd.cpp needs
  return 6 * padded(context, kBlock) * stride + 6 * kBlock * stride + 4 * kBlock * kBlock +
         4 * kBlock;
}

void attention_forward(const AttentionArgs& args, std::int64_t task, float* scratch) {
#ifdef __AVX512BF16__
  if (takes_pairs(args)) {
    return attention_forward_pairs(args, task, scratch);
  }
#endif
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
#ifdef __AVX512BF16__
  if (takes_pairs(args)) {
    return attention_backward_pairs(args, task, scratch);
  }
#endif
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
