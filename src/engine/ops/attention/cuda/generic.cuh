// The tile kernels of generic.cu, which launches them: forward, delta, dq, dk and dv.
#pragma once

#include "engine/ops/attention/cuda/attention_kernels.h"
#include "engine/ops/attention/cuda/rotated.cuh"

namespace fathom::engine::cuda {
namespace {

constexpr float kNormEpsilon = 1e-5f;  // of normalised attention

struct GenericArgs {
  const float* x;  // [B T, (H + 2 G) K], mapped
  float* d;        // same shape: gradients of x
  const void *dy, *y_in;
  void* y;
  float *stats, *delta;  // [B H, T]; normalised attention has three numbers in stats
  float* means;          // [B H, T]: of dy . v over the keys, for normalised attention
  int context, heads, key_heads, head_size, stride;
  AttentionKind kind;
  int above, below;
  float scale;
  const std::uint64_t* visible;  // AttentionPattern's tables, or null: the band decides
  const BlockView* views;

  __device__ int words() const { return (context + 63) / 64; }
  __device__ bool allows(int query, int key) const {
    const bool inside = query < context && key < context;
    if (visible == nullptr) return inside && key <= query + above && key >= query - below;
    return inside &&
           (visible[static_cast<std::int64_t>(query) * words() + key / 64] >> key % 64 & 1);
  }
  /// No query of the tile sees any key of the other; a tile lies in one block of 64.
  __device__ bool hidden(int query0, int key0) const {
    return views != nullptr && views[query0 / 64 * words() + key0 / 64] == BlockView::none;
  }
};

template <int TS, int KMAX>
struct Tile {
  static constexpr int kStride = KMAX + 1, kFloats = TS * kStride;
};

/// Rows row0.. of one head into a tile; zeros beyond T and K.
template <int TS, int KMAX, class Value>
__device__ void load(float* tile, const Value* from, std::int64_t stride, int row0,
                     const GenericArgs& args) {
  for (int i = threadIdx.x; i < TS * KMAX; i += 256) {
    const int row = i / KMAX, column = i % KMAX;
    const bool inside = row0 + row < args.context && column < args.head_size;
    tile[row * Tile<TS, KMAX>::kStride + column] =
        inside ? value(from, (row0 + row) * stride + column) : 0;
  }
}

/// s[r][c] = <a_{ty + 16 r}, b_{tx + 16 c}>
template <int R, int STRIDE>
__device__ void dots(float (&s)[R][R], const float* a, const float* b, int size, int ty, int tx) {
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < R; ++c) s[r][c] = 0;
  }
  for (int k = 0; k < size; ++k) {
    float left[R], right[R];
#pragma unroll
    for (int r = 0; r < R; ++r) left[r] = a[(ty + 16 * r) * STRIDE + k];
#pragma unroll
    for (int c = 0; c < R; ++c) right[c] = b[(tx + 16 * c) * STRIDE + k];
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int c = 0; c < R; ++c) s[r][c] = fmaf(left[r], right[c], s[r][c]);
    }
  }
}

/// out[r][c] += sum_j p[ty + 16 r][j] b[j][tx + 16 c]
template <int TS, int C, int STRIDE>
__device__ void add_rows(float (&out)[TS / 16][C], const float* p, const float* b, int ty, int tx) {
  for (int j = 0; j < TS; ++j) {
    float right[C];
#pragma unroll
    for (int c = 0; c < C; ++c) right[c] = b[j * STRIDE + tx + 16 * c];
#pragma unroll
    for (int r = 0; r < TS / 16; ++r) {
      const float left = p[(ty + 16 * r) * (TS + 1) + j];
#pragma unroll
      for (int c = 0; c < C; ++c) out[r][c] = fmaf(left, right[c], out[r][c]);
    }
  }
}

__device__ float row_max(float x) {  // over the 16 threads of a row
  for (int step = 8; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}
__device__ float row_sum(float x) {
  for (int step = 8; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

/// Turns the scores of a row into weights: for a softmax relative to the new maximum, and with the
/// sums so far (`sum` and the row of `out`) rescaled to it.
template <int R, int C>
__device__ void weigh_row(const GenericArgs& args, float (&s)[R], float& top, float& sum,
                          float (&out)[C], int query, int key0, std::int64_t number) {
  float best = top;
  if (args.kind == AttentionKind::softmax) {
    for (int c = 0; c < R; ++c) {
      s[c] = args.allows(query, key0 + 16 * c) ? s[c] * args.scale : -INFINITY;
      best = fmaxf(best, s[c]);
    }
    best = row_max(best);
    const float base = best == -INFINITY ? 0 : best;
    const float shrink = expf(top - base);
    top = best;
    sum *= shrink;
#pragma unroll
    for (int c = 0; c < C; ++c) out[c] *= shrink;
#pragma unroll
    for (int c = 0; c < R; ++c) s[c] = expf(s[c] - base);
  } else if (args.kind == AttentionKind::normalised) {
    const float mean = args.stats[3 * number], inverse = args.stats[3 * number + 1];
    for (int c = 0; c < R; ++c) {
      s[c] = args.allows(query, key0 + 16 * c) ? (s[c] * args.scale - mean) * inverse : 0;
    }
  } else {
    const float factor = args.kind == AttentionKind::none ? args.scale : 1;
    for (int c = 0; c < R; ++c) s[c] = args.allows(query, key0 + 16 * c) ? s[c] * factor : 0;
  }
}

template <int TS, int KMAX, class Value>
__global__ void __launch_bounds__(256) generic_forward_kernel(const GenericArgs args) {
  constexpr int R = TS / 16, C = KMAX / 16, kStride = Tile<TS, KMAX>::kStride;
  extern __shared__ float memory[];
  float *q = memory, *k = q + Tile<TS, KMAX>::kFloats, *v = k + Tile<TS, KMAX>::kFloats;
  float* p = v + Tile<TS, KMAX>::kFloats;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int tiles = (args.context + TS - 1) / TS;
  const int sequence = blockIdx.x / tiles, q0 = (tiles - 1 - blockIdx.x % tiles) * TS;
  const int b = sequence / args.heads, h = sequence % args.heads;
  const int g = h / (args.heads / args.key_heads);
  const float* x = args.x + static_cast<std::int64_t>(b) * args.context * args.stride;
  load<TS, KMAX>(q, x + h * args.head_size, args.stride, q0, args);

  float out[R][C] = {}, top[R], sum[R] = {};
  for (int r = 0; r < R; ++r) top[r] = -INFINITY;
  const int end = min(args.context, q0 + TS + args.above);
  for (int k0 = max(0, q0 - args.below) / TS * TS; k0 < end; k0 += TS) {
    if (args.hidden(q0, k0)) continue;
    __syncthreads();
    load<TS, KMAX>(k, x + (args.heads + g) * args.head_size, args.stride, k0, args);
    load<TS, KMAX>(v, x + (args.heads + args.key_heads + g) * args.head_size, args.stride, k0,
                   args);
    __syncthreads();
    float s[R][R];
    dots<R, kStride>(s, q, k, args.head_size, ty, tx);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const int i = min(q0 + ty + 16 * r, args.context - 1);
      weigh_row(args, s[r], top[r], sum[r], out[r], q0 + ty + 16 * r, k0 + tx,
                static_cast<std::int64_t>(sequence) * args.context + i);
#pragma unroll
      for (int c = 0; c < R; ++c) {
        sum[r] += s[r][c];
        p[(ty + 16 * r) * (TS + 1) + tx + 16 * c] = s[r][c];
      }
    }
    __syncwarp();  // a row of p belongs to 16 threads of one warp
    add_rows<TS, C, kStride>(out, p, v, ty, tx);
  }

  for (int r = 0; r < R; ++r) {
    const int i = q0 + ty + 16 * r;
    const float total = row_sum(sum[r]);
    if (i >= args.context) continue;
    float stat = 0, factor = 1;
    const bool several = args.kind == AttentionKind::normalised;  // written already
    if (args.kind != AttentionKind::none && !several) factor = total > 0 ? 1 / total : 0;
    if (args.kind == AttentionKind::softmax && total > 0) stat = top[r] + logf(total);
    if (args.kind == AttentionKind::linear) stat = total;
    if (tx == 0 && !several)
      args.stats[static_cast<std::int64_t>(sequence) * args.context + i] = stat;
    const std::int64_t row =
        ((static_cast<std::int64_t>(b) * args.context + i) * args.heads + h) * args.head_size;
    for (int c = 0; c < C; ++c) {
      if (tx + 16 * c < args.head_size) {
        put(static_cast<Value*>(args.y), row + tx + 16 * c, out[r][c] * factor);
      }
    }
  }
}

/// delta[b h, t] = <dy, y>, a warp for each.
template <class Value>
__global__ void generic_delta_kernel(const GenericArgs args, std::int64_t rows) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (row >= rows) return;  // row = (b T + t) H + h
  const int lane = threadIdx.x % 32;
  const auto* dy = static_cast<const Value*>(args.dy) + row * args.head_size;
  const auto* y = static_cast<const Value*>(args.y_in) + row * args.head_size;
  float sum = 0;
  for (int c = lane; c < args.head_size; c += 32) sum = fmaf(value(dy, c), value(y, c), sum);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  const std::int64_t h = row % args.heads, token = row / args.heads;
  const std::int64_t b = token / args.context, t = token % args.context;
  if (lane == 0) args.delta[(b * args.heads + h) * args.context + t] = sum;
}

/// What the backward knows about a row.
struct RowNumbers {
  float stat, delta;
  float inverse, mean;  // of normalised attention, whose delta is divided by the count

  __device__ static RowNumbers at(const GenericArgs& args, std::int64_t row) {
    if (args.kind != AttentionKind::normalised) return {args.stats[row], args.delta[row], 0, 0};
    const float* stats = args.stats + 3 * row;
    return {stats[0], args.delta[row] / fmaxf(stats[2], 1), stats[1], args.means[row]};
  }
};

/// Means and variances of <a_i, b_j> over the keys j that i sees: of the scores into `stats`, or,
/// with dy and values, the means alone. Two passes, to avoid cancellation.
template <int TS, int KMAX, class Value, bool VALUES>
__global__ void __launch_bounds__(256) generic_moments_kernel(const GenericArgs args) {
  constexpr int R = TS / 16, kStride = Tile<TS, KMAX>::kStride;
  extern __shared__ float memory[];
  float *a = memory, *b = a + Tile<TS, KMAX>::kFloats;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int tiles = (args.context + TS - 1) / TS;
  const int sequence = blockIdx.x / tiles, q0 = blockIdx.x % tiles * TS;
  const int h = sequence % args.heads, g = h / (args.heads / args.key_heads);
  const std::int64_t first_row = static_cast<std::int64_t>(sequence / args.heads) * args.context;
  const float* x = args.x + first_row * args.stride;
  const std::int64_t y_stride = args.heads * args.head_size;
  if constexpr (VALUES) {
    load<TS, KMAX>(a,
                   static_cast<const Value*>(args.dy) + first_row * y_stride + h * args.head_size,
                   y_stride, q0, args);
  } else {
    load<TS, KMAX>(a, x + h * args.head_size, args.stride, q0, args);
  }
  const int column = (args.heads + (VALUES ? args.key_heads : 0) + g) * args.head_size;
  const float factor = VALUES ? 1 : args.scale;
  float mean[R] = {}, square[R] = {}, count[R] = {};
  const int end = min(args.context, q0 + TS + args.above);
  for (int pass = 0; pass < (VALUES ? 1 : 2); ++pass) {
    float sum[R] = {}, seen[R] = {};
    for (int k0 = max(0, q0 - args.below) / TS * TS; k0 < end; k0 += TS) {
      if (args.hidden(q0, k0)) continue;
      __syncthreads();
      load<TS, KMAX>(b, x + column, args.stride, k0, args);
      __syncthreads();
      float s[R][R];
      dots<R, kStride>(s, a, b, args.head_size, ty, tx);
      for (int r = 0; r < R; ++r) {
        for (int c = 0; c < R; ++c) {
          if (!args.allows(q0 + ty + 16 * r, k0 + tx + 16 * c)) continue;
          const float apart = s[r][c] * factor - mean[r];
          sum[r] += pass == 0 ? apart : apart * apart;
          seen[r] += 1;
        }
      }
    }
    for (int r = 0; r < R; ++r) {
      count[r] = row_sum(seen[r]);
      (pass == 0 ? mean : square)[r] = row_sum(sum[r]) / fmaxf(count[r], 1);
    }
  }
  for (int r = 0; r < R; ++r) {
    const int i = q0 + ty + 16 * r;
    if (i >= args.context || tx != 0) continue;
    const std::int64_t row = static_cast<std::int64_t>(sequence) * args.context + i;
    if (VALUES) {
      args.means[row] = mean[r];
    } else {
      args.stats[3 * row] = mean[r];
      args.stats[3 * row + 1] = count[r] > 0 ? rsqrtf(square[r] + kNormEpsilon) : 0;
      args.stats[3 * row + 2] = count[r];
    }
  }
}

/// The weight a of a score and the gradient ds of the unscaled score q . k, from dp = dy . v.
__device__ void weigh(const GenericArgs& args, bool allowed, float score, float dp,
                      const RowNumbers& row, float& a, float& ds) {
  const float stat = row.stat, delta = row.delta;
  a = ds = 0;
  if (!allowed) return;
  if (args.kind == AttentionKind::softmax) {
    a = expf(score * args.scale - stat);
    ds = args.scale * a * (dp - delta);
  } else if (args.kind == AttentionKind::normalised) {
    a = (score * args.scale - stat) * row.inverse;
    ds = args.scale * row.inverse * (dp - row.mean - a * delta);
  } else if (args.kind == AttentionKind::linear) {
    a = score / stat;
    ds = (dp - delta) / stat;
  } else {
    a = score * args.scale;
    ds = args.scale * dp;
  }
}

template <int TS, int KMAX, class Value>
__global__ void __launch_bounds__(256) generic_dq_kernel(const GenericArgs args) {
  constexpr int R = TS / 16, C = KMAX / 16, kStride = Tile<TS, KMAX>::kStride;
  constexpr int kFloats = Tile<TS, KMAX>::kFloats;
  extern __shared__ float memory[];
  float *q = memory, *dy = q + kFloats, *k = dy + kFloats, *v = k + kFloats, *p = v + kFloats;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int tiles = (args.context + TS - 1) / TS;
  const int sequence = blockIdx.x / tiles, q0 = (tiles - 1 - blockIdx.x % tiles) * TS;
  const int b = sequence / args.heads, h = sequence % args.heads;
  const int g = h / (args.heads / args.key_heads);
  const std::int64_t first_row = static_cast<std::int64_t>(b) * args.context;
  const float* x = args.x + first_row * args.stride;
  const std::int64_t y_stride = args.heads * args.head_size;
  load<TS, KMAX>(q, x + h * args.head_size, args.stride, q0, args);
  load<TS, KMAX>(dy, static_cast<const Value*>(args.dy) + first_row * y_stride + h * args.head_size,
                 y_stride, q0, args);
  RowNumbers numbers[R];
  float out[R][C] = {};
  for (int r = 0; r < R; ++r) {
    const int i = min(q0 + ty + 16 * r, args.context - 1);
    numbers[r] = RowNumbers::at(args, static_cast<std::int64_t>(sequence) * args.context + i);
  }
  const int end = min(args.context, q0 + TS + args.above);
  for (int k0 = max(0, q0 - args.below) / TS * TS; k0 < end; k0 += TS) {
    if (args.hidden(q0, k0)) continue;
    __syncthreads();
    load<TS, KMAX>(k, x + (args.heads + g) * args.head_size, args.stride, k0, args);
    load<TS, KMAX>(v, x + (args.heads + args.key_heads + g) * args.head_size, args.stride, k0,
                   args);
    __syncthreads();
    float s[R][R], dp[R][R];
    dots<R, kStride>(s, q, k, args.head_size, ty, tx);
    dots<R, kStride>(dp, dy, v, args.head_size, ty, tx);
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int c = 0; c < R; ++c) {
        const bool allowed = args.allows(q0 + ty + 16 * r, k0 + tx + 16 * c);
        float a, ds;
        weigh(args, allowed, s[r][c], dp[r][c], numbers[r], a, ds);
        p[(ty + 16 * r) * (TS + 1) + tx + 16 * c] = ds;
      }
    }
    __syncwarp();
    add_rows<TS, C, kStride>(out, p, k, ty, tx);
  }
  for (int r = 0; r < R; ++r) {
    const int i = q0 + ty + 16 * r;
    for (int c = 0; c < C; ++c) {
      const int column = tx + 16 * c;
      if (i < args.context && column < args.head_size) {
        args.d[(first_row + i) * args.stride + h * args.head_size + column] = out[r][c];
      }
    }
  }
}

/// Weights and slopes of a thread's scores, rows being keys, into tiles of TS + 1 columns.
template <int TS, int R>
__device__ void weigh_keys(const GenericArgs& args, const float (&s)[R][R], const float (&dp)[R][R],
                           std::int64_t numbers, int query0, int key0, float* weights,
                           float* slopes) {
#pragma unroll
  for (int c = 0; c < R; ++c) {
    const int i = query0 + 16 * c;
    const RowNumbers row = RowNumbers::at(args, numbers + min(i, args.context - 1));
#pragma unroll
    for (int r = 0; r < R; ++r) {
      float a, ds;
      weigh(args, args.allows(i, key0 + 16 * r), s[r][c], dp[r][c], row, a, ds);
      weights[16 * r * (TS + 1) + 16 * c] = a;
      slopes[16 * r * (TS + 1) + 16 * c] = ds;
    }
  }
}

template <int TS, int KMAX, class Value>
__global__ void __launch_bounds__(256) generic_dkv_kernel(const GenericArgs args) {
  constexpr int R = TS / 16, C = KMAX / 16, kStride = Tile<TS, KMAX>::kStride;
  constexpr int kFloats = Tile<TS, KMAX>::kFloats;
  extern __shared__ float memory[];
  float *k = memory, *v = k + kFloats, *q = v + kFloats, *dy = q + kFloats;
  float *weights = dy + kFloats, *slopes = weights + TS * (TS + 1);
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int tiles = (args.context + TS - 1) / TS;
  const int sequence = blockIdx.x / tiles, k0 = blockIdx.x % tiles * TS;
  const int b = sequence / args.key_heads, g = sequence % args.key_heads;
  const int group = args.heads / args.key_heads;
  const std::int64_t first_row = static_cast<std::int64_t>(b) * args.context;
  const float* x = args.x + first_row * args.stride;
  const std::int64_t y_stride = args.heads * args.head_size;
  const int k_column = (args.heads + g) * args.head_size;
  const int v_column = (args.heads + args.key_heads + g) * args.head_size;
  load<TS, KMAX>(k, x + k_column, args.stride, k0, args);
  load<TS, KMAX>(v, x + v_column, args.stride, k0, args);

  float dk[R][C] = {}, dv[R][C] = {};
  const int first = max(0, k0 - args.above) / TS * TS;
  const int end = min(args.context, k0 + TS + args.below);
  for (int h = g * group; h < (g + 1) * group; ++h) {
    const std::int64_t numbers = (static_cast<std::int64_t>(b) * args.heads + h) * args.context;
    for (int i0 = first; i0 < end; i0 += TS) {
      if (args.hidden(i0, k0)) continue;
      __syncthreads();
      load<TS, KMAX>(q, x + h * args.head_size, args.stride, i0, args);
      load<TS, KMAX>(dy,
                     static_cast<const Value*>(args.dy) + first_row * y_stride + h * args.head_size,
                     y_stride, i0, args);
      __syncthreads();
      float s[R][R], dp[R][R];
      dots<R, kStride>(s, k, q, args.head_size, ty, tx);
      dots<R, kStride>(dp, v, dy, args.head_size, ty, tx);
      weigh_keys<TS>(args, s, dp, numbers, i0 + tx, k0 + ty, weights + ty * (TS + 1) + tx,
                     slopes + ty * (TS + 1) + tx);
      __syncwarp();
      add_rows<TS, C, kStride>(dv, weights, dy, ty, tx);
      add_rows<TS, C, kStride>(dk, slopes, q, ty, tx);
    }
  }
  for (int r = 0; r < R; ++r) {
    const int j = k0 + ty + 16 * r;
    for (int c = 0; c < C; ++c) {
      const int column = tx + 16 * c;
      if (j >= args.context || column >= args.head_size) continue;
      float* row = args.d + (first_row + j) * args.stride + column;
      row[k_column] = dk[r][c];
      row[v_column] = dv[r][c];
    }
  }
}

}  // namespace
}  // namespace fathom::engine::cuda
