// Attention in blocks of 64 queries by 64 keys with an online softmax (arXiv 2205.14135): one task
// is one sequence and one key head with all the query heads that share it.
//
// Scratch of a task holds the head's keys and values in f32, both as rows [T, K] and transposed
// [K, T], padded with zeros to whole blocks and vectors, so that every GEMM below is one plain
// row-times-matrix kernel.
#include "engine/ops/attention/attention_gemm.h"

namespace fathom::engine::cpu::FATHOM_ISA {
namespace {

/// Turns scores into weights relative to the running top, and rescales the sums so far.
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

/// Counts, means and sums of squared deviations of rows, joined block by block (Chan et al. 1982).
struct RowMoments {
  float count[kBlock], mean[kBlock], square[kBlock];

  void clear() {
    for (std::int64_t i = 0; i < kBlock; ++i) count[i] = mean[i] = square[i] = 0;
  }
  float inverse(std::int64_t i) const {
    return count[i] > 0 ? 1.0f / square_root(splat(square[i] / count[i] + kNormEpsilon))[0] : 0.0f;
  }
  /// Adds a block whose masked numbers are zero; row i has `seen` others.
  void add(const float* row, std::int64_t i, std::int64_t seen) {
    if (seen == 0) return;
    Vec total{}, squares{};
    for (std::int64_t j = 0; j < kBlock; j += kLanes) {
      total += load(row + j);
      squares += load(row + j) * load(row + j);
    }
    const auto n = static_cast<float>(seen);
    const float own = sum(total) / n, all = count[i] + n, apart = own - mean[i];
    const float own_square = sum(squares) - n * own * own;
    square[i] += (own_square > 0 ? own_square : 0) + apart * apart * count[i] * n / all;
    mean[i] += apart * n / all;
    count[i] = all;
  }
};

/// The moments of <a_i, b_j> over the keys j that i sees.
void row_moments(const Head& head, std::int64_t query, const float* a, const float* b_t,
                 float* scores, RowMoments& moments) {
  moments.clear();
  for (std::int64_t block = head.first_block(query); block < head.end_block(query); ++block) {
    const std::int64_t key = block * kBlock;
    if (head.hidden(query, key)) continue;
    gemm(kBlock, kBlock, head.size, a, head.stride, 1, b_t + key * head.stride, kBlock, scores,
         kBlock, false);
    if (!head.fully_allowed(query, key)) head.mask(scores, query, key, 0.0f);
    for (std::int64_t i = 0; i < kBlock; ++i) {
      moments.add(scores + i * kBlock, i, head.seen(query + i, key));
    }
  }
}

/// (s - mean) / sqrt(var + epsilon); the caller must clear masked ones.
void normalise_scores(const RowMoments& moments, float* scores) {
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const float inverse = moments.inverse(i), mean = moments.mean[i];
    for (std::int64_t j = 0; j < kBlock; j += kLanes) {
      float* at = scores + i * kBlock + j;
      store(at, (load(at) - mean) * inverse);
    }
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
  const bool normalised = args.kind == AttentionKind::normalised;
  RowMoments moments;
  if (normalised) row_moments(head, query, q, keys_t, scores, moments);
  for (std::int64_t block = head.first_block(query); block < head.end_block(query); ++block) {
    const std::int64_t key = block * kBlock;
    if (head.hidden(query, key)) continue;
    gemm(kBlock, kBlock, head.size, q, head.stride, 1, keys_t + key * head.stride, kBlock, scores,
         kBlock, false, head.diagonal(query, key, Part::columns_upto_row));
    if (normalised) normalise_scores(moments, scores);
    if (!head.fully_allowed(query, key)) head.mask(scores, query, key, softmax ? kMasked : 0.0f);
    if (softmax) online_softmax(scores, tops, sums, y, head.stride);
    if (args.kind == AttentionKind::linear) add_row_sums(scores, sums);
    gemm(kBlock, head.stride, kBlock, scores, kBlock, 1, values + key * head.stride, head.stride, y,
         head.stride, true, head.diagonal(query, key, Part::depth_upto_row));
  }
  for (std::int64_t i = 0; i < kBlock && query + i < head.context; ++i) {
    const bool divided = softmax || args.kind == AttentionKind::linear;
    const float factor = !divided ? 1.0f : (sums[i] > 0 ? 1.0f / sums[i] : 0.0f);
    float stat = 0;
    if (softmax && sums[i] > 0) stat = tops[i] + __builtin_logf(sums[i]);
    if (args.kind == AttentionKind::linear) stat = sums[i];
    const std::int64_t row = (head.sequence * args.heads + h) * head.context + query + i;
    if (normalised) {
      args.stats[3 * row] = moments.mean[i];
      args.stats[3 * row + 1] = moments.inverse(i);
      args.stats[3 * row + 2] = moments.count[i];
    } else {
      args.stats[row] = stat;
    }
    T* out = static_cast<T*>(args.y.data) +
             ((head.sequence * head.context + query + i) * args.heads + h) * head.size;
    for_vectors(head.size, [&](std::int64_t c, std::int64_t n) {
      store_upto(out + c, load(y + i * head.stride + c) * factor, n);
    });
  }
}

struct BackwardScratch {
  float *keys, *values, *keys_t, *values_t, *d_keys, *d_values;
  float *q, *dy, *y, *dq, *scores, *slopes, *stats, *inverses, *counts, *deltas;

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
    inverses = cut(kBlock);
    counts = cut(kBlock);
    deltas = cut(kBlock);
  }
};

/// scores -> weights; d (holding p = dy . v) -> ds. See ops/attention/attention.h.
void weights_and_slopes(const Head& head, const BackwardScratch& scratch, const RowMoments& values,
                        std::int64_t query, std::int64_t key) {
  const AttentionKind kind = head.args.kind;
  float *scores = scratch.scores, *d = scratch.slopes;
  const float* deltas = scratch.deltas;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const float stat = scratch.stats[i];
    const float factor = scratch.inverses[i], share = deltas[i] / scratch.counts[i];
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
      } else if (kind == AttentionKind::normalised) {
        const Vec a = (s - stat) * factor;
        store(scores + at, a);
        store(d + at, (p - values.mean[i] - a * share) * factor);
      }
    }
  }
  if (!head.fully_allowed(query, key)) {
    head.mask(scores, query, key, 0.0f);
    head.mask(d, query, key, 0.0f);
  }
}

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
    const bool inside = query + i < head.context;
    const bool several = args.kind == AttentionKind::normalised;
    s.stats[i] = inside ? args.stats[several ? 3 * row : row] : 0.0f;
    s.inverses[i] = inside && several ? args.stats[3 * row + 1] : 0.0f;
    s.counts[i] = inside && several ? args.stats[3 * row + 2] : 1.0f;
  }
  RowMoments values;  // of dy . v
  if (args.kind == AttentionKind::normalised) {
    row_moments(head, query, s.dy, s.values_t, s.scores, values);
  }
  for (std::int64_t block = head.first_block(query); block < head.end_block(query); ++block) {
    const std::int64_t key = block * kBlock;
    if (head.hidden(query, key)) continue;
    const Part columns = head.diagonal(query, key, Part::columns_upto_row);
    gemm(kBlock, kBlock, head.size, s.q, stride, 1, s.keys_t + key * head.stride, kBlock, s.scores,
         kBlock, false, columns);
    gemm(kBlock, kBlock, head.size, s.dy, stride, 1, s.values_t + key * stride, kBlock, s.slopes,
         kBlock, false, columns);
    weights_and_slopes(head, s, values, query, key);
    gemm(kBlock, stride, kBlock, s.slopes, kBlock, 1, s.keys + key * stride, stride, s.dq, stride,
         true, head.diagonal(query, key, Part::depth_upto_row));
    const Part from_row = head.diagonal(query, key, Part::depth_from_row);
    gemm(kBlock, stride, kBlock, s.slopes, 1, kBlock, s.q, stride, s.d_keys + key * stride, stride,
         true, from_row);
    gemm(kBlock, stride, kBlock, s.scores, 1, kBlock, s.dy, stride, s.d_values + key * stride,
         stride, true, from_row);
  }
  scatter<T>(head, s.dq, s.q, h * head.size, query, kBlock, scale, true);
}

}  // namespace

std::int64_t attention_scratch_floats(const AttentionArgs& args) {
  if (sums_states(args)) return feature_scratch_floats(args);
  // As attention_pairs_simd.cpp needs.
  const std::int64_t stride = padded(args.head_size, 2 * kLanes);
  return 6 * padded(args.context, kBlock) * stride + 6 * kBlock * stride + 4 * kBlock * kBlock +
         4 * kBlock;
}

void attention_forward(const AttentionArgs& args, std::int64_t task, float* scratch) {
  if (sums_states(args)) return feature_forward(args, task, scratch);
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
      for (std::int64_t query = 0; query < head.context && !head.stopped(); query += kBlock) {
        forward_query_block<T>(head, head.key_head * head.group() + g, query, keys_t + rows, keys_t,
                               values);
      }
    }
  });
}

void attention_backward(const AttentionArgs& args, std::int64_t task, float* scratch) {
  if (sums_states(args)) return feature_backward(args, task, scratch);
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
      for (std::int64_t query = 0; query < head.context && !head.stopped(); query += kBlock) {
        backward_query_block<T>(head, head.key_head * head.group() + g, query, s);
      }
    }
    scatter<T>(head, s.d_keys, s.keys, head.key_column(), 0, head.padded_context, 1.0f, true);
    scatter<T>(head, s.d_values, nullptr, head.value_column(), 0, head.padded_context, 1.0f, false);
  });
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
