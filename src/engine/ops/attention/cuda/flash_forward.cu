// Softmax attention forward on tensor cores, one block for BQ queries of a head.
//
// Each warp holds 16 MT queries in registers and walks over the key tiles its mask reaches (two
// tiles in flight), keeping a running maximum m and sum l of every row:
//   m' = max(m, max_j s_j);  p_j = 2^(c s_j - c m');  l' = l 2^(c m - c m') + sum p;
//   o' = o 2^(c m - c m') + p V;   c = scale log2(e);   y = o / l,  stats = scale m + ln l.
#include <algorithm>

#include "core/error.h"
#include "engine/ops/attention/cuda/flash_tiles.cuh"

namespace fathom::engine::cuda::flash {
namespace {

template <int KP_, int BQ_, int BK_, int MT_, int BLOCKS_>
struct ForwardTiles {
  static constexpr int KP = KP_, BQ = BQ_, BK = BK_, MT = MT_, kBlocks = BLOCKS_;
  static constexpr int kThreads = BQ / (16 * MT) * 32;
  static constexpr int kQBytes = BQ * KP * 2, kKBytes = BK * KP * 2;
  static constexpr int kBytes = kQBytes + 4 * kKBytes;
};

template <int MT, int N>
__device__ __forceinline__ void mask_scores(float (&s)[MT][N / 8][4], const FlashArgs& args,
                                            int row0, int key0, int lane) {
#pragma unroll
  for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = row0 + mt * 16 + half * 8 + (lane >> 2);
      const int last = min(i + args.above, args.context - 1) - key0 - (lane & 3) * 2;
      const int first = i - args.below - key0 - (lane & 3) * 2;
#pragma unroll
      for (int n = 0; n < N / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int j = n * 8 + e;
          if (j > last || j < first) s[mt][n][2 * half + e] = -INFINITY;
        }
      }
    }
  }
}

template <int KP, int MT>
struct RunningRows {
  float o[MT][KP / 8][4];
  float top[MT][2], sum[MT][2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
      for (int n = 0; n < KP / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) o[mt][n][i] = 0;
      }
      top[mt][0] = top[mt][1] = -INFINITY;
      sum[mt][0] = sum[mt][1] = 0;
    }
  }

  /// Turns scores into weights relative to the new maximum; rescales what was summed before.
  template <int N>
  __device__ __forceinline__ void take(float (&s)[MT][N / 8][4], float scale_log2) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float best = fmaxf(s[mt][0][2 * half], s[mt][0][2 * half + 1]);
#pragma unroll
        for (int n = 1; n < N / 8; ++n) {
          best = fmaxf(best, fmaxf(s[mt][n][2 * half], s[mt][n][2 * half + 1]));
        }
        best = fmaxf(top[mt][half], quad_max(best));
        const float base = best == -INFINITY ? 0.0f : best * scale_log2;
        const float shrink = exp2_fast(fmaf(top[mt][half], scale_log2, -base));
        top[mt][half] = best;
        float added = 0;
#pragma unroll
        for (int n = 0; n < N / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& x = s[mt][n][2 * half + e];
            x = exp2_fast(fmaf(x, scale_log2, -base));
            added += x;
          }
        }
        sum[mt][half] = fmaf(sum[mt][half], shrink, added);
#pragma unroll
        for (int n = 0; n < KP / 8; ++n) {
          o[mt][n][2 * half] *= shrink;
          o[mt][n][2 * half + 1] *= shrink;
        }
      }
    }
  }

  /// The factors that make o the result, and stats.
  __device__ __forceinline__ void finish(const FlashArgs& args, float (&factor)[MT][2],
                                         int sequence, int row0, int lane) const {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float total = quad_sum(sum[mt][half]);
        factor[mt][half] = total > 0 ? 1 / total : 0;
        const int i = row0 + mt * 16 + half * 8 + (lane >> 2);
        if ((lane & 3) == 0 && i < args.context) {
          args.stats[static_cast<std::int64_t>(sequence) * args.context + i] =
              total > 0 ? fmaf(top[mt][half], args.scale, logf(total)) : 0;
        }
      }
    }
  }
};

template <class Tiles>
__global__ void __launch_bounds__(Tiles::kThreads, Tiles::kBlocks)
    forward_kernel(const FlashArgs args) {
  constexpr int KP = Tiles::KP, BQ = Tiles::BQ, BK = Tiles::BK, MT = Tiles::MT;
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t q_tile = shared_address(memory), tiles = q_tile + Tiles::kQBytes;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

  const BlockPlace place(args, args.heads);
  const int g = place.head / (args.heads / args.key_heads);
  const int q0 = (args.tiles - 1 - place.tile) * BQ;  // the longest rows first
  const bf16* q = args.q + (place.first_row + q0) * args.qk_stride + place.head * args.head_size;
  const KeyBuffers<KP, BK, Tiles::kThreads> buffers{
      args.k + place.first_row * args.qk_stride + g * args.head_size,
      args.v + place.first_row * args.v_stride + g * args.head_size, tiles,
      tiles + 2 * Tiles::kKBytes};

  const int first = max(0, q0 - args.below) / BK;
  const int end = (min(args.context, q0 + BQ + args.above) + BK - 1) / BK;
  load_tile<KP, BQ, Tiles::kThreads>(q_tile, q, args.qk_stride, args.context - q0, args.head_size);
  if (first < end) buffers.load(args, first);
  cp_async_commit();

  const std::uint32_t own_rows = q_tile + warp * 16 * MT * KP * 2;
  const int row0 = q0 + warp * 16 * MT, row1 = row0 + 16 * MT - 1;
  OperandA<KP, MT> left;
  RunningRows<KP, MT> rows;
  rows.clear();
  cp_async_wait_all();
  __syncthreads();
  left.load(own_rows, lane);
  for (int tile = first; tile < end; ++tile) {
    if (tile > first) {
      cp_async_wait_all();
      __syncthreads();  // this tile has arrived and the other buffer is free
    }
    if (tile + 1 < end) buffers.load(args, tile + 1);
    cp_async_commit();
    const int key0 = tile * BK, key1 = key0 + BK - 1;
    if (key0 > row1 + args.above || key1 < row0 - args.below) continue;
    float s[MT][BK / 8][4];
    multiply_transposed<KP, MT, BK>(s, left, buffers.keys(tile), lane);
    const bool whole =
        key1 <= row0 + args.above && key0 >= row1 - args.below && key1 < args.context;
    if (!whole) mask_scores<MT, BK>(s, args, row0, key0, lane);
    rows.template take<BK>(s, args.scale_log2);
    multiply_add<KP, MT, BK>(rows.o, s, buffers.values(tile), lane);
  }

  const BlockPlace here(args, args.heads);
  float factor[MT][2];
  rows.finish(args, factor, here.sequence, row0, lane);
  bf16* y = args.y + (here.first_row + row0) * args.y_stride + here.head * args.head_size;
  store_rows<KP, MT>(rows.o, factor, own_rows, y, args.y_stride, args.context - row0,
                     args.head_size, lane);
}

template <class Tiles>
void launch(FlashArgs args, cudaStream_t stream) {
  args.tiles = (args.context + Tiles::BQ - 1) / Tiles::BQ;
  const int sequences = args.batch * args.heads;
  args.tile_major = keys_stay_cached(args, args.key_heads);
  if (Tiles::kBytes > 48 * 1024) {
    cudaFuncSetAttribute(forward_kernel<Tiles>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         Tiles::kBytes);
  }
  forward_kernel<Tiles><<<sequences * args.tiles, Tiles::kThreads, Tiles::kBytes, stream>>>(args);
  if (cudaGetLastError() != cudaSuccess) {
    throw DeviceError("attention forward: the kernel could not be launched");
  }
}

}  // namespace

void launch_forward(const FlashArgs& args, bool small, cudaStream_t stream) {
  if (args.head_size <= 16) {
    if (small) return launch<ForwardTiles<16, 64, 64, 1, 5>>(args, stream);
    return launch<ForwardTiles<16, 128, 64, 2, 3>>(args, stream);
  }
  if (args.head_size <= 32) {
    if (small) return launch<ForwardTiles<32, 64, 64, 1, 5>>(args, stream);
    return launch<ForwardTiles<32, 128, 64, 2, 3>>(args, stream);
  }
  if (args.head_size <= 64) {
    if (small) return launch<ForwardTiles<64, 64, 64, 1, 4>>(args, stream);
    return launch<ForwardTiles<64, 128, 64, 2, 2>>(args, stream);
  }
  launch<ForwardTiles<128, 64, 64, 1, 2>>(args, stream);
}

}  // namespace fathom::engine::cuda::flash
