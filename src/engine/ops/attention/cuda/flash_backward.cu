// Backward of softmax attention on tensor cores, in two kernels with fixed orders of summation.
//
//   dq kernel, a block for BQ queries of a head:  p = 2^(c s - lse2), ds = p (dy V^T - delta),
//     dq = scale sum over key tiles of ds K; also leaves lse2 = stats log2(e), delta = <dy, y>.
//   dkv kernel, a block for BN keys of a key head, over the query heads of its group and their
//     query tiles in order:  dv += p^T dy,  dk += scale ds^T q. It works with the transposes
//     s^T = K q^T and dp^T = V dy^T, so that p^T and ds^T are already left operands in registers.
#include <algorithm>

#include "core/error.h"
#include "engine/cuda/device.cuh"
#include "engine/ops/attention/cuda/flash_tiles.cuh"

namespace fathom::engine::cuda::flash {
namespace {

constexpr float kLog2E = 1.4426950408889634f;

template <int KP_, int ROWS_, int STEP_, int MT_, int BLOCKS_, bool REGISTERS_ = true>
struct BackwardTiles {
  static constexpr int KP = KP_, kRows = ROWS_, kStep = STEP_, MT = MT_, kBlocks = BLOCKS_;
  static constexpr int kThreads = kRows / (16 * MT) * 32;
  static constexpr int kRowBytes = kRows * KP * 2, kStepBytes = kStep * KP * 2;
  static constexpr int kBytes = 2 * kRowBytes + 4 * kStepBytes;  // of the dq kernel
  using Left = std::conditional_t<REGISTERS_, OperandA<KP, MT>, OperandAShared<KP, MT>>;
};

template <int MT, int N>
__device__ __forceinline__ void clear(float (&c)[MT][N][4]) {
#pragma unroll
  for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) c[mt][n][i] = 0;
    }
  }
}

/// -inf where column0 + c lies outside [row - before, row + after], or at `limit` or beyond.
template <int MT, int N>
__device__ __forceinline__ void mask_band(float (&s)[MT][N][4], int row0, int column0, int before,
                                          int after, int limit, int lane) {
#pragma unroll
  for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row0 + mt * 16 + half * 8 + (lane >> 2);
      const int last = min(row + after, limit - 1) - column0 - (lane & 3) * 2;
      const int first = row - before - column0 - (lane & 3) * 2;
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int column = n * 8 + e;
          if (column > last || column < first) s[mt][n][2 * half + e] = -INFINITY;
        }
      }
    }
  }
}

/// <dy_i, y_i> of the two rows a thread shares with its quad; y is read in dy's fragment layout.
template <int KP, int MT, class Left>
__device__ __forceinline__ void row_deltas(float (&delta)[MT][2], const Left& dy, const bf16* y,
                                           std::int64_t stride, int rows_left, int head_size,
                                           int lane) {
#pragma unroll
  for (int mt = 0; mt < MT; ++mt) {
    delta[mt][0] = delta[mt][1] = 0;
#pragma unroll
    for (int kk = 0; kk < KP / 16; ++kk) {
      std::uint32_t a[4];
      dy.get(a, mt, kk);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = mt * 16 + (i & 1) * 8 + (lane >> 2);
        const int column = kk * 16 + (i >> 1) * 8 + (lane & 3) * 2;
        if (row >= rows_left || column >= head_size) continue;
        const float2 left = unpack_bf16(a[i]);
        const float2 right =
            unpack_bf16(*reinterpret_cast<const std::uint32_t*>(y + row * stride + column));
        delta[mt][i & 1] = fmaf(left.x, right.x, fmaf(left.y, right.y, delta[mt][i & 1]));
      }
    }
    delta[mt][0] = quad_sum(delta[mt][0]);
    delta[mt][1] = quad_sum(delta[mt][1]);
  }
}

/// store_rows() with one factor for all rows.
template <int KP, int MT>
__device__ __forceinline__ void store_scaled(const float (&c)[MT][KP / 8][4], float scale,
                                             std::uint32_t rows, bf16* to, std::int64_t stride,
                                             int rows_left, int head_size, int lane) {
  float factor[MT][2];
#pragma unroll
  for (int mt = 0; mt < MT; ++mt) factor[mt][0] = factor[mt][1] = scale;
  store_rows<KP, MT>(c, factor, rows, to, stride, rows_left, head_size, lane);
}

/// lse2 of a warp's rows, left in memory with delta for the dkv kernel.
template <int MT>
__device__ __forceinline__ void leave_numbers(const FlashArgs& args, float (&lse2)[MT][2],
                                              const float (&delta)[MT][2], int sequence, int row0,
                                              int lane) {
#pragma unroll
  for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = row0 + mt * 16 + half * 8 + (lane >> 2);
      const std::int64_t at = static_cast<std::int64_t>(sequence) * args.context + i;
      lse2[mt][half] = i < args.context ? args.stats[at] * kLog2E : 0;
      if ((lane & 3) == 0 && i < args.context) {
        args.lse2[at] = lse2[mt][half];
        args.delta[at] = delta[mt][half];
      }
    }
  }
}

/// ds = p (dp - delta) replaces the scores; rows are queries.
template <int MT, int N>
__device__ __forceinline__ void make_slopes(float (&s)[MT][N][4], const float (&dp)[MT][N][4],
                                            const float (&lse2)[MT][2], const float (&delta)[MT][2],
                                            float scale_log2) {
#pragma unroll
  for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float p = exp2_fast(fmaf(s[mt][n][i], scale_log2, -lse2[mt][i >> 1]));
        s[mt][n][i] = p * (dp[mt][n][i] - delta[mt][i >> 1]);
      }
    }
  }
}

template <class Tiles>
__global__ void __launch_bounds__(Tiles::kThreads, Tiles::kBlocks) dq_kernel(const FlashArgs args) {
  constexpr int KP = Tiles::KP, BQ = Tiles::kRows, BK = Tiles::kStep, MT = Tiles::MT;
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t q_tile = shared_address(memory);
  const std::uint32_t dy_tile = q_tile + Tiles::kRowBytes, tiles = dy_tile + Tiles::kRowBytes;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

  const BlockPlace place(args, args.heads);
  const int h = place.head, g = h / (args.heads / args.key_heads);
  const int q0 = (args.tiles - 1 - place.tile) * BQ;  // the longest rows first
  const std::int64_t first_row = place.first_row;
  const KeyBuffers<KP, BK, Tiles::kThreads> buffers{
      args.k + first_row * args.qk_stride + g * args.head_size,
      args.v + first_row * args.v_stride + g * args.head_size, tiles,
      tiles + 2 * Tiles::kStepBytes};
  const std::int64_t y_at = (first_row + q0) * args.y_stride + h * args.head_size;

  const int first = max(0, q0 - args.below) / BK;
  const int end = (min(args.context, q0 + BQ + args.above) + BK - 1) / BK;
  load_tile<KP, BQ, Tiles::kThreads>(
      q_tile, args.q + (first_row + q0) * args.qk_stride + h * args.head_size, args.qk_stride,
      args.context - q0, args.head_size);
  load_tile<KP, BQ, Tiles::kThreads>(dy_tile, args.dy + y_at, args.y_stride, args.context - q0,
                                     args.head_size);
  if (first < end) buffers.load(args, first);
  cp_async_commit();

  const std::uint32_t warp_bytes = warp * 16 * MT * KP * 2;
  const int row0 = q0 + warp * 16 * MT, row1 = row0 + 16 * MT - 1;
  typename Tiles::Left q, dy;
  float dq[MT][KP / 8][4], lse2[MT][2], delta[MT][2];
  clear(dq);
  cp_async_wait_all();
  __syncthreads();
  q.load(q_tile + warp_bytes, lane);
  dy.load(dy_tile + warp_bytes, lane);
  row_deltas<KP, MT>(delta, dy, args.y_in + y_at + (row0 - q0) * args.y_stride, args.y_stride,
                     args.context - row0, args.head_size, lane);
  leave_numbers(args, lse2, delta, place.sequence, row0, lane);
  for (int tile = first; tile < end; ++tile) {
    if (tile > first) {
      cp_async_wait_all();
      __syncthreads();  // this tile has arrived and the other buffer is free
    }
    if (tile + 1 < end) buffers.load(args, tile + 1);
    cp_async_commit();
    const int key0 = tile * BK, key1 = key0 + BK - 1;
    if (key0 > row1 + args.above || key1 < row0 - args.below) continue;
    float s[MT][BK / 8][4], dp[MT][BK / 8][4];
    multiply_transposed<KP, MT, BK>(s, q, buffers.keys(tile), lane);
    const bool whole =
        key1 <= row0 + args.above && key0 >= row1 - args.below && key1 < args.context;
    if (!whole) mask_band(s, row0, key0, args.below, args.above, args.context, lane);
    multiply_transposed<KP, MT, BK>(dp, dy, buffers.values(tile), lane);
    make_slopes(s, dp, lse2, delta, args.scale_log2);
    multiply_add<KP, MT, BK>(dq, s, buffers.keys(tile), lane);
  }

  const BlockPlace here(args, args.heads);
  bf16* to = args.dq + (here.first_row + row0) * args.d_stride + here.head * args.head_size;
  store_scaled<KP, MT>(dq, args.scale, q_tile + warp_bytes, to, args.d_stride, args.context - row0,
                       args.head_size, lane);
}

/// The queries of a group of heads that a block of keys walks over, two tiles in flight: with dy,
/// and lse2 and delta of their rows.
template <class Tiles>
struct QueryBuffers {
  static constexpr int KP = Tiles::KP, BM = Tiles::kStep;
  std::int64_t first_row;  // of the sequence
  int b, first_head;
  std::uint32_t q_tiles, dy_tiles, numbers;

  /// Rows beyond T get zeros everywhere: p = 1, but dy = ds = 0.
  __device__ __forceinline__ void load(const FlashArgs& args, int step, int head, int tile) const {
    const int buffer = step & 1, i0 = tile * BM, h = first_head + head, left = args.context - i0;
    load_tile<KP, BM, Tiles::kThreads>(
        q_tiles + buffer * Tiles::kStepBytes,
        args.q + (first_row + i0) * args.qk_stride + h * args.head_size, args.qk_stride, left,
        args.head_size);
    load_tile<KP, BM, Tiles::kThreads>(
        dy_tiles + buffer * Tiles::kStepBytes,
        args.dy + (first_row + i0) * args.y_stride + h * args.head_size, args.y_stride, left,
        args.head_size);
    const std::int64_t at = (static_cast<std::int64_t>(b) * args.heads + h) * args.context + i0;
    for (int i = threadIdx.x; i < 2 * BM; i += Tiles::kThreads) {
      const int row = i % BM;
      const float* from = (i < BM ? args.lse2 : args.delta) + at;
      cp_async_4(numbers + (buffer * 2 * BM + i) * 4, row < left ? from + row : from, row < left);
    }
  }
};

/// Weights replace the scores; columns are queries.
template <int MT, int N>
__device__ __forceinline__ void make_weights(float (&p)[MT][N][4], const float* lse2,
                                             float scale_log2) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const float2 log_sum = *reinterpret_cast<const float2*>(lse2 + n * 8);
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float base = (i & 1) ? log_sum.y : log_sum.x;
        p[mt][n][i] = exp2_fast(fmaf(p[mt][n][i], scale_log2, -base));
      }
    }
  }
}

/// ds = p (dp - delta) replaces dp; columns are queries.
template <int MT, int N>
__device__ __forceinline__ void make_slopes(float (&ds)[MT][N][4], const float (&p)[MT][N][4],
                                            const float* deltas) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const float2 delta = *reinterpret_cast<const float2*>(deltas + n * 8);
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        ds[mt][n][i] = p[mt][n][i] * (ds[mt][n][i] - ((i & 1) ? delta.y : delta.x));
      }
    }
  }
}

/// A warp's rows of keys and their gradients.
template <class Tiles>
struct KeyRows {
  static constexpr int KP = Tiles::KP, BM = Tiles::kStep, MT = Tiles::MT;
  typename Tiles::Left k, v;
  float dk[MT][KP / 8][4], dv[MT][KP / 8][4];

  /// Adds what the queries of a tile contribute; `numbers` are this lane's lse2 and delta.
  __device__ __forceinline__ void take(const FlashArgs& args, std::uint32_t q_tile,
                                       std::uint32_t dy_tile, const float* numbers, int row0,
                                       int i0, int lane) {
    const int row1 = row0 + 16 * MT - 1, i1 = i0 + BM - 1;
    float p[MT][BM / 8][4], ds[MT][BM / 8][4];
    multiply_transposed<KP, MT, BM>(p, k, q_tile, lane);
    const bool whole = i1 <= row0 + args.below && i0 >= row1 - args.above;
    if (!whole) mask_band(p, row0, i0, args.above, args.below, args.context, lane);
    make_weights(p, numbers, args.scale_log2);
    multiply_add<KP, MT, BM>(dv, p, dy_tile, lane);
    multiply_transposed<KP, MT, BM>(ds, v, dy_tile, lane);
    make_slopes(ds, p, numbers + BM);
    multiply_add<KP, MT, BM>(dk, ds, q_tile, lane);
  }
};

template <class Tiles>
__global__ void __launch_bounds__(Tiles::kThreads, Tiles::kBlocks)
    dkv_kernel(const FlashArgs args) {
  constexpr int KP = Tiles::KP, BN = Tiles::kRows, BM = Tiles::kStep, MT = Tiles::MT;
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t k_tile = shared_address(memory);
  const std::uint32_t v_tile = k_tile + Tiles::kRowBytes, tiles = v_tile + Tiles::kRowBytes;
  const float* row_numbers = reinterpret_cast<const float*>(memory + Tiles::kBytes);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

  const BlockPlace place(args, args.key_heads);
  const int group = args.heads / args.key_heads, g = place.head;
  const int k0 = place.tile * BN;  // under a causal mask the longest columns come first already
  const std::int64_t first_row = place.first_row;
  const QueryBuffers<Tiles> buffers{first_row,
                                    place.b,
                                    g * group,
                                    tiles,
                                    tiles + 2 * Tiles::kStepBytes,
                                    tiles + 4 * Tiles::kStepBytes};
  const int first = max(0, k0 - args.above) / BM;
  const int end = (min(args.context, k0 + BN + args.below) + BM - 1) / BM;
  load_tile<KP, BN, Tiles::kThreads>(
      k_tile, args.k + (first_row + k0) * args.qk_stride + g * args.head_size, args.qk_stride,
      args.context - k0, args.head_size);
  load_tile<KP, BN, Tiles::kThreads>(v_tile,
                                     args.v + (first_row + k0) * args.v_stride + g * args.head_size,
                                     args.v_stride, args.context - k0, args.head_size);
  const int steps = max(0, end - first) * group;
  if (steps > 0) buffers.load(args, 0, 0, first);
  cp_async_commit();

  const std::uint32_t warp_bytes = warp * 16 * MT * KP * 2;
  const int row0 = k0 + warp * 16 * MT, row1 = row0 + 16 * MT - 1;
  KeyRows<Tiles> rows;
  clear(rows.dk);
  clear(rows.dv);
  cp_async_wait_all();
  __syncthreads();
  rows.k.load(k_tile + warp_bytes, lane);
  rows.v.load(v_tile + warp_bytes, lane);
  int head = 0, tile = first;
  for (int step = 0; step < steps; ++step) {
    if (step > 0) {
      cp_async_wait_all();
      __syncthreads();  // these queries have arrived and the other buffer is free
    }
    const int i0 = tile * BM, i1 = i0 + BM - 1;
    if (++tile == end) {
      tile = first;
      ++head;
    }
    if (step + 1 < steps) buffers.load(args, step + 1, head, tile);
    cp_async_commit();
    if (i0 > row1 + args.below || i1 < row0 - args.above) continue;
    rows.take(args, buffers.q_tiles + (step & 1) * Tiles::kStepBytes,
              buffers.dy_tiles + (step & 1) * Tiles::kStepBytes,
              row_numbers + (step & 1) * 2 * BM + (lane & 3) * 2, row0, i0, lane);
  }

  const BlockPlace here(args, args.key_heads);
  const std::int64_t at = (here.first_row + row0) * args.d_stride + here.head * args.head_size;
  const int left = args.context - row0;
  store_scaled<KP, MT>(rows.dk, args.scale, k_tile + warp_bytes, args.dk + at, args.d_stride, left,
                       args.head_size, lane);
  store_scaled<KP, MT>(rows.dv, 1, v_tile + warp_bytes, args.dv + at, args.d_stride, left,
                       args.head_size, lane);
}

void check_launch() {
  if (cudaGetLastError() != cudaSuccess) {
    throw DeviceError("attention backward: the kernel could not be launched");
  }
}

template <class Tiles>
void launch_dq(FlashArgs args, cudaStream_t stream) {
  args.tiles = (args.context + Tiles::kRows - 1) / Tiles::kRows;
  args.tile_major = keys_stay_cached(args, args.key_heads);
  if (Tiles::kBytes > 48 * 1024) {
    cudaFuncSetAttribute(dq_kernel<Tiles>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         Tiles::kBytes);
  }
  dq_kernel<Tiles>
      <<<args.batch * args.heads * args.tiles, Tiles::kThreads, Tiles::kBytes, stream>>>(args);
  check_launch();
}

template <class Tiles>
void launch_dkv(FlashArgs args, cudaStream_t stream) {
  constexpr int kBytes = Tiles::kBytes + 4 * Tiles::kStep * 4;  // plus lse2 and delta
  args.tiles = (args.context + Tiles::kRows - 1) / Tiles::kRows;
  args.tile_major = keys_stay_cached(args, args.heads);
  if (kBytes > 48 * 1024) {
    cudaFuncSetAttribute(dkv_kernel<Tiles>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  }
  dkv_kernel<Tiles>
      <<<args.batch * args.key_heads * args.tiles, Tiles::kThreads, kBytes, stream>>>(args);
  check_launch();
}

// The tiles below are the fastest measured on an H200 at contexts of 256 and 1024.
void launch_dq_kernel(const FlashArgs& args, cudaStream_t stream) {
  if (args.head_size <= 16) return launch_dq<BackwardTiles<16, 128, 32, 2, 4>>(args, stream);
  if (args.head_size <= 32) return launch_dq<BackwardTiles<32, 64, 64, 1, 3>>(args, stream);
  if (args.head_size <= 64) return launch_dq<BackwardTiles<64, 64, 64, 1, 3>>(args, stream);
  launch_dq<BackwardTiles<128, 64, 32, 1, 2>>(args, stream);
}

void launch_dkv_kernel(const FlashArgs& args, cudaStream_t stream) {
  if (args.head_size <= 16) return launch_dkv<BackwardTiles<16, 128, 32, 2, 4>>(args, stream);
  if (args.head_size <= 32) return launch_dkv<BackwardTiles<32, 64, 64, 1, 3>>(args, stream);
  if (args.head_size <= 64) {
    return launch_dkv<BackwardTiles<64, 128, 32, 2, 2, false>>(args, stream);
  }
  launch_dkv<BackwardTiles<128, 64, 32, 1, 2, false>>(args, stream);
}

}  // namespace

void launch_backward(const FlashArgs& args, cudaStream_t stream) {
  launch_dq_kernel(args, stream);  // leaves lse2 and delta for the next
  launch_dkv_kernel(args, stream);
}

}  // namespace fathom::engine::cuda::flash
