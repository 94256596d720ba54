// Softmax attention in bf16 where the processor multiplies pairs of bf16 (vdpbf16ps): twice the
// rate of f32. Scores and all sums are f32; the weights and their slopes are rounded to bf16 before
// they are multiplied; the other factors already are bf16.
//
// A GEMM C[64, n] += A[64, k] B[k, n] reads A as rows of pairs and B with the pairs of its rows
// side by side, [k/2][n][2]. For A B^T that is B's pairs as 32-bit numbers, transposed; for A B it
// is B's rows interleaved two by two. Backward computes transposed scores [key, query], whose rows
// are the A of d_keys and d_values.
#include "engine/ops/attention/attention_blocks.h"

#ifdef __AVX512BF16__

namespace fathom::engine::cpu::FATHOM_ISA {
namespace {

using Pair = std::uint32_t;
constexpr std::int64_t kBlockPairs = kBlock / 2;

inline VecU load_pairs(const Pair* p) {
  return (VecU)_mm512_loadu_si512(p);
}
inline void store_pairs(Pair* p, VecU v) {
  _mm512_storeu_si512(p, (__m512i)v);
}
inline VecU half_bits(Vec v) {
  return (VecU)_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)v));
}

template <int kRows, int kVecs>
inline void tile(std::int64_t k_begin, std::int64_t k_end, const Pair* a, std::int64_t a_row,
                 const Pair* b, std::int64_t b_row, float* c, std::int64_t c_row, bool accumulate) {
  __m512 sums[kRows][kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) {
      sums[i][j] = accumulate ? (__m512)load(c + i * c_row + j * kLanes) : _mm512_setzero_ps();
    }
  }
  for (std::int64_t k = k_begin; k < k_end; ++k) {
    __m512bh right[kVecs];
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) right[j] = (__m512bh)load_pairs(b + k * b_row + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const auto left = (__m512bh)_mm512_set1_epi32(static_cast<int>(a[i * a_row + k]));
#pragma GCC unroll 16
      for (int j = 0; j < kVecs; ++j) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], left, right[j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) store(c + i * c_row + j * kLanes, (Vec)sums[i][j]);
  }
}

/// C[64, columns] (+)= A B; `pairs` is half the depth; columns a multiple of 2 kLanes.
void gemm(std::int64_t columns, std::int64_t pairs, const Pair* a, std::int64_t a_row,
          const Pair* b, std::int64_t b_row, float* c, std::int64_t c_row, bool accumulate,
          Part part) {
  constexpr std::int64_t kRows = 8, kCols = 2 * kLanes;
  for (std::int64_t i = 0; i < kBlock; i += kRows) {
    const std::int64_t edge = i + kRows;
    const std::int64_t k_begin = part == Part::depth_from_row ? i / 2 : 0;
    const std::int64_t k_end = part == Part::depth_upto_row && edge / 2 < pairs ? edge / 2 : pairs;
    const std::int64_t first = part == Part::columns_from_row ? i / kCols * kCols : 0;
    const std::int64_t last = part == Part::columns_upto_row && edge < columns ? edge : columns;
    for (std::int64_t j = first; j < last; j += kCols) {
      tile<kRows, 2>(k_begin, k_end, a + i * a_row, a_row, b + j, b_row, c + i * c_row + j, c_row,
                     accumulate);
    }
  }
}

/// Rows of one head as bf16 in rows of `stride` pairs, rotated if positions are rotary.
struct PairHead : Head {
  std::int64_t pairs;  // of a row, padded with zeros to whole vectors

  PairHead(const AttentionArgs& arguments, std::int64_t task)
      : Head(arguments, task), pairs(padded(arguments.head_size, 2 * kLanes) / 2) {
    stride = 2 * pairs;
  }

  void gather_pairs(const void* source, std::int64_t cols, std::int64_t column, std::int64_t first,
                    std::int64_t count, bool as_key, Pair* out) const {
    for (std::int64_t r = 0; r < count; ++r) {
      auto* row = reinterpret_cast<Bf16*>(out + r * pairs);
      const std::int64_t t = first + r;
      if (t >= context || size < stride) {
        for (std::int64_t i = 0; i < pairs; i += kLanes) store_pairs(out + r * pairs + i, VecU{});
      }
      if (t >= context) continue;
      const Bf16* from =
          static_cast<const Bf16*>(source) + (sequence * context + t) * cols + column;
      if (as_key && args.rotations) {
        float rotated[kLargestHead];
        for (std::int64_t i = 0; i < size; ++i) rotated[i] = load_part(from + i, 1)[0];
        rotate(rotated, t, 1.0f);
        for (std::int64_t i = 0; i < size; ++i) store_part(row + i, splat(rotated[i]), 1);
        continue;
      }
      for_vectors(size, [&](std::int64_t i, std::int64_t n) {
        store_upto(row + i, load_upto(from + i, n), n);
      });
    }
  }

  /// [64][pairs] -> [pairs][64]
  void transpose_pairs(const Pair* rows, Pair* out) const {
    for (std::int64_t r = 0; r < kBlock; r += kLanes) {
      for (std::int64_t c = 0; c < pairs; c += kLanes) {
        transpose_square(rows + r * pairs + c, pairs, out + c * kBlock + r, kBlock);
      }
    }
  }
  static void transpose_square(const Pair* from, std::int64_t from_row, Pair* to,
                               std::int64_t to_row) {
    Vec square[kLanes];
#pragma GCC unroll 16
    for (std::int64_t k = 0; k < kLanes; ++k) square[k] = (Vec)load_pairs(from + k * from_row);
    FATHOM_ISA::transpose(square);
#pragma GCC unroll 16
    for (std::int64_t k = 0; k < kLanes; ++k) store_pairs(to + k * to_row, (VecU)square[k]);
  }

  /// [64 rows][stride] -> [32][stride][2], two rows side by side
  void interleave(const Pair* rows, Pair* out) const {
    for (std::int64_t r = 0; r < kBlockPairs; ++r) {
      const auto* even = reinterpret_cast<const std::uint16_t*>(rows + 2 * r * pairs);
      const std::uint16_t* odd = even + stride;
      for (std::int64_t c = 0; c < stride; c += kLanes) {
        const auto low = (VecU)_mm512_cvtepu16_epi32(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(even + c)));
        const auto high = (VecU)_mm512_cvtepu16_epi32(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd + c)));
        store_pairs(out + r * stride + c, low | (high << 16));
      }
    }
  }
};

class Cutter {
 public:
  explicit Cutter(float* memory) : memory_(memory) {}
  float* floats(std::int64_t count) {
    float* place = memory_;
    memory_ += count;
    return place;
  }
  Pair* pairs(std::int64_t count) { return reinterpret_cast<Pair*>(floats(count)); }

 private:
  float* memory_;
};

/// Turns scores into rounded weights relative to the running top; rescales the sums so far.
void online_softmax(const float* scores, float scale, Pair* weights, float* tops, float* sums,
                    float* y, std::int64_t stride) {
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const float* row = scores + i * kBlock;
    Vec v[kBlock / kLanes];
    Vec highest = splat(kMasked);
    for (std::int64_t j = 0; j < kBlock / kLanes; ++j) {
      v[j] = load(row + j * kLanes) * scale;
      highest = max(highest, v[j]);
    }
    const float block_top = largest(highest);
    const float top = block_top > tops[i] ? block_top : tops[i];
    Vec total{};
    for (std::int64_t j = 0; j < kBlock / kLanes; ++j) {
      const Vec p = exp(v[j] - top);
      store(reinterpret_cast<Bf16*>(weights + i * kBlockPairs) + j * kLanes, p);
      total += p;
    }
    if (top != tops[i]) {
      const float fade = exp(splat(tops[i] - top))[0];
      sums[i] *= fade;
      for (std::int64_t c = 0; c < stride; c += kLanes) {
        store(y + i * stride + c, load(y + i * stride + c) * fade);
      }
      tops[i] = top;
    }
    sums[i] += sum(total);
  }
}

struct ForwardScratch {
  Pair *keys_t, *values, *rows, *q, *weights;
  float *y, *scores, *tops, *sums;

  ForwardScratch(const PairHead& head, float* memory) {
    Cutter cut(memory);
    const std::int64_t all = head.padded_context * head.pairs;
    keys_t = cut.pairs(all);
    values = cut.pairs(all);
    rows = cut.pairs(kBlock * head.pairs);
    q = cut.pairs(kBlock * head.pairs);
    weights = cut.pairs(kBlock * kBlockPairs);
    y = cut.floats(kBlock * head.stride);
    scores = cut.floats(kBlock * kBlock);
    tops = cut.floats(kBlock);
    sums = cut.floats(kBlock);
  }
};

void forward_query_block(const PairHead& head, std::int64_t h, std::int64_t query,
                         const ForwardScratch& s) {
  const AttentionArgs& args = head.args;
  head.gather_pairs(args.qkv.data, head.qkv_cols(), h * head.size, query, kBlock, true, s.q);
  for (std::int64_t i = 0; i < kBlock * head.stride; i += kLanes) store(s.y + i, Vec{});
  for (std::int64_t i = 0; i < kBlock; ++i) {
    s.tops[i] = kEmptyTop;
    s.sums[i] = 0;
  }
  for (std::int64_t block = head.first_block(query); block < head.end_block(query); ++block) {
    const std::int64_t key = block * kBlock;
    gemm(kBlock, head.pairs, s.q, head.pairs, s.keys_t + key * head.pairs, kBlock, s.scores, kBlock,
         false, head.diagonal(query, key, Part::columns_upto_row));
    if (!head.fully_allowed(query, key)) {
      head.mask(s.scores, query, key, kMasked / args.scale);
    }
    online_softmax(s.scores, args.scale, s.weights, s.tops, s.sums, s.y, head.stride);
    gemm(head.stride, kBlockPairs, s.weights, kBlockPairs, s.values + key * head.pairs, head.stride,
         s.y, head.stride, true, head.diagonal(query, key, Part::depth_upto_row));
  }
  for (std::int64_t i = 0; i < kBlock && query + i < head.context; ++i) {
    const float factor = s.sums[i] > 0 ? 1.0f / s.sums[i] : 0.0f;
    const float stat = s.sums[i] > 0 ? s.tops[i] + __builtin_logf(s.sums[i]) : 0.0f;
    args.stats[(head.sequence * args.heads + h) * head.context + query + i] = stat;
    Bf16* out = static_cast<Bf16*>(args.y.data) +
                ((head.sequence * head.context + query + i) * args.heads + h) * head.size;
    for_vectors(head.size, [&](std::int64_t c, std::int64_t n) {
      store_upto(out + c, load(s.y + i * head.stride + c) * factor, n);
    });
  }
}

struct BackwardScratch {
  Pair *keys, *values, *keys_by_two;                     // of all keys
  Pair *q, *dy, *y, *q_t, *dy_t, *q_by_two, *dy_by_two;  // of a block of queries
  Pair *weights, *slopes, *slopes_by_two, *slopes_t;     // of a block of scores
  float *d_keys, *d_values, *dq, *scores, *d_weights, *stats, *deltas;

  BackwardScratch(const PairHead& head, float* memory) {
    Cutter cut(memory);
    const std::int64_t all = head.padded_context * head.pairs, block = kBlock * head.pairs;
    const std::int64_t square = kBlock * kBlockPairs;
    keys = cut.pairs(all);
    values = cut.pairs(all);
    keys_by_two = cut.pairs(all);
    q = cut.pairs(block);
    dy = cut.pairs(block);
    y = cut.pairs(block);
    q_t = cut.pairs(block);
    dy_t = cut.pairs(block);
    q_by_two = cut.pairs(block);
    dy_by_two = cut.pairs(block);
    weights = cut.pairs(square);
    slopes = cut.pairs(square);
    slopes_by_two = cut.pairs(square);
    slopes_t = cut.pairs(square);
    d_keys = cut.floats(2 * all);
    d_values = cut.floats(2 * all);
    dq = cut.floats(2 * block);
    scores = cut.floats(kBlock * kBlock);
    d_weights = cut.floats(kBlock * kBlock);
    stats = cut.floats(kBlock);
    deltas = cut.floats(kBlock);
  }
};

/// Whether a query (lane) sees key `key` of a block on the edge of the mask.
VecI sees(const PairHead& head, std::int64_t query, std::int64_t key) {
  const VecI i = lane_numbers() + static_cast<std::int32_t>(query);
  const auto j = static_cast<std::int32_t>(key), context = static_cast<std::int32_t>(head.context);
  const auto window = static_cast<std::int32_t>(head.args.window);
  VecI yes = i < context;
  if (key >= head.context) yes = VecI{};
  if (head.args.mask == MaskKind::causal) yes &= i >= j;
  if (head.args.mask == MaskKind::strict) yes &= i > j;
  if (window > 0) yes &= (i - j < window) & (j - i < window);
  return yes;
}

/// Turns transposed scores and d_weights into rounded weights and slopes [key][query], and the
/// slopes with the keys two by two, [32][query][2].
void weights_and_slopes(const PairHead& head, const BackwardScratch& s, std::int64_t query,
                        std::int64_t key) {
  const bool whole = head.fully_allowed(query, key);
  for (std::int64_t r = 0; r < kBlockPairs; ++r) {
    for (std::int64_t c = 0; c < kBlock; c += kLanes) {
      const Vec stat = load(s.stats + c), delta = load(s.deltas + c);
      VecU bits[2];
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k) {
        const std::int64_t row = 2 * r + k, at = row * kBlock + c;
        Vec a = exp(load(s.scores + at) * head.args.scale - stat);
        Vec slope = a * (load(s.d_weights + at) - delta);
        if (!whole) {
          const VecI yes = sees(head, query + c, key + row);
          a = select(yes, a, Vec{});
          slope = select(yes, slope, Vec{});
        }
        store(reinterpret_cast<Bf16*>(s.weights + row * kBlockPairs) + c, a);
        store(reinterpret_cast<Bf16*>(s.slopes + row * kBlockPairs) + c, slope);
        bits[k] = half_bits(slope);
      }
      store_pairs(s.slopes_by_two + r * kBlock + c, bits[0] | (bits[1] << 16));
    }
  }
  for (std::int64_t r = 0; r < kBlockPairs; r += kLanes) {
    for (std::int64_t c = 0; c < kBlock; c += kLanes) {
      PairHead::transpose_square(s.slopes_by_two + r * kBlock + c, kBlock,
                                 s.slopes_t + c * kBlockPairs + r, kBlockPairs);
    }
  }
}

void load_query_block(const PairHead& head, std::int64_t h, std::int64_t query,
                      const BackwardScratch& s) {
  const AttentionArgs& args = head.args;
  const std::int64_t y_cols = args.heads * head.size;
  head.gather_pairs(args.qkv.data, head.qkv_cols(), h * head.size, query, kBlock, true, s.q);
  head.gather_pairs(args.dy.data, y_cols, h * head.size, query, kBlock, false, s.dy);
  head.gather_pairs(args.y.data, y_cols, h * head.size, query, kBlock, false, s.y);
  head.transpose_pairs(s.q, s.q_t);
  head.transpose_pairs(s.dy, s.dy_t);
  head.interleave(s.q, s.q_by_two);
  head.interleave(s.dy, s.dy_by_two);
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const auto* dy = reinterpret_cast<const Bf16*>(s.dy + i * head.pairs);
    const auto* y = reinterpret_cast<const Bf16*>(s.y + i * head.pairs);
    Vec delta{};
    for (std::int64_t c = 0; c < head.stride; c += kLanes) {
      delta += load(dy + c) * load(y + c);
      store(s.dq + i * head.stride + c, Vec{});
    }
    s.deltas[i] = sum(delta);
    const std::int64_t row = (head.sequence * args.heads + h) * head.context + query + i;
    s.stats[i] = query + i < head.context ? args.stats[row] : 0.0f;
  }
}

void backward_query_block(const PairHead& head, std::int64_t h, std::int64_t query,
                          const BackwardScratch& s) {
  const std::int64_t stride = head.stride, pairs = head.pairs;
  load_query_block(head, h, query, s);
  for (std::int64_t block = head.first_block(query); block < head.end_block(query); ++block) {
    const std::int64_t key = block * kBlock;
    const Part columns = head.diagonal(query, key, Part::columns_from_row);
    gemm(kBlock, pairs, s.keys + key * pairs, pairs, s.q_t, kBlock, s.scores, kBlock, false,
         columns);
    gemm(kBlock, pairs, s.values + key * pairs, pairs, s.dy_t, kBlock, s.d_weights, kBlock, false,
         columns);
    weights_and_slopes(head, s, query, key);
    gemm(stride, kBlockPairs, s.slopes_t, kBlockPairs, s.keys_by_two + key * pairs, stride, s.dq,
         stride, true, head.diagonal(query, key, Part::depth_upto_row));
    const Part from_row = head.diagonal(query, key, Part::depth_from_row);
    gemm(stride, kBlockPairs, s.slopes, kBlockPairs, s.q_by_two, stride, s.d_keys + key * stride,
         stride, true, from_row);
    gemm(stride, kBlockPairs, s.weights, kBlockPairs, s.dy_by_two, stride,
         s.d_values + key * stride, stride, true, from_row);
  }
  scatter<Bf16>(head, s.dq, nullptr, h * head.size, query, kBlock, head.args.scale, true);
}

}  // namespace

void attention_forward_pairs(const AttentionArgs& args, std::int64_t task, float* scratch) {
  const PairHead head(args, task);
  const ForwardScratch s(head, scratch);
  for (std::int64_t key = 0; key < head.padded_context; key += kBlock) {
    head.gather_pairs(args.qkv.data, head.qkv_cols(), head.key_column(), key, kBlock, true, s.rows);
    head.transpose_pairs(s.rows, s.keys_t + key * head.pairs);
    head.gather_pairs(args.qkv.data, head.qkv_cols(), head.value_column(), key, kBlock, false,
                      s.rows);
    head.interleave(s.rows, s.values + key * head.pairs);
  }
  for (std::int64_t g = 0; g < head.group(); ++g) {
    for (std::int64_t query = 0; query < head.context && !head.stopped(); query += kBlock) {
      forward_query_block(head, head.key_head * head.group() + g, query, s);
    }
  }
}

void attention_backward_pairs(const AttentionArgs& args, std::int64_t task, float* scratch) {
  const PairHead head(args, task);
  const BackwardScratch s(head, scratch);
  head.gather_pairs(args.qkv.data, head.qkv_cols(), head.key_column(), 0, head.padded_context, true,
                    s.keys);
  head.gather_pairs(args.qkv.data, head.qkv_cols(), head.value_column(), 0, head.padded_context,
                    false, s.values);
  for (std::int64_t key = 0; key < head.padded_context; key += kBlock) {
    head.interleave(s.keys + key * head.pairs, s.keys_by_two + key * head.pairs);
  }
  for (std::int64_t i = 0; i < head.padded_context * head.stride; i += kLanes) {
    store(s.d_keys + i, Vec{});
    store(s.d_values + i, Vec{});
  }
  for (std::int64_t g = 0; g < head.group(); ++g) {
    for (std::int64_t query = 0; query < head.context && !head.stopped(); query += kBlock) {
      backward_query_block(head, head.key_head * head.group() + g, query, s);
    }
  }
  scatter<Bf16>(head, s.d_keys, nullptr, head.key_column(), 0, head.padded_context, args.scale,
                true);
  scatter<Bf16>(head, s.d_values, nullptr, head.value_column(), 0, head.padded_context, 1.0f,
                false);
}

}  // namespace fathom::engine::cpu::FATHOM_ISA

#endif
