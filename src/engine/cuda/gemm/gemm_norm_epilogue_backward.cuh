// The backward of the norm for a tile of 64 rows whose incoming gradient dy a warpgroup holds in
// registers (gemm_norm.h). Accumulator c[n][2 half + e] is of column 8 n + 2 (lane % 4) + e and row
// lane / 4 + 8 half (of a warp's 16).
#pragma once

#include <cuda_fp16.h>

#include "engine/cuda/gemm/gemm_norm_ring.cuh"

namespace fathom::engine::cuda::gemm_norm {

/// h of a tile. With many accumulators there is room only for half precision: it has 11 bits, and
/// dx, for which alone h is kept, has 8.
template <int NB, bool kHalves = (NB > 2)>
struct Normalised {
  float value[8 * NB][4];
  __device__ __forceinline__ void put(int n, int half, float2 h) {
    value[n][2 * half] = h.x;
    value[n][2 * half + 1] = h.y;
  }
  __device__ __forceinline__ float2 get(int n, int half) const {
    return {value[n][2 * half], value[n][2 * half + 1]};
  }
};
template <int NB>
struct Normalised<NB, true> {
  __half2 value[8 * NB][2];
  __device__ __forceinline__ void put(int n, int half, float2 h) {
    value[n][half] = __float22half2_rn(h);
  }
  __device__ __forceinline__ float2 get(int n, int half) const {
    return __half22float2(value[n][half]);
  }
};

/// Sums of 4 x 2 columns over the 8 lanes that share a column: each lane gets one, that of
/// column_of(lane).
__device__ __forceinline__ float column_sums(const float (&v)[8], int lane) {
  float four[4], two[2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const bool upper = lane & 16;
    four[i] = (upper ? v[i + 4] : v[i]) + __shfl_xor_sync(0xffffffffu, upper ? v[i] : v[i + 4], 16);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const bool upper = lane & 8;
    two[i] = (upper ? four[i + 2] : four[i]) +
             __shfl_xor_sync(0xffffffffu, upper ? four[i] : four[i + 2], 8);
  }
  const bool upper = lane & 4;
  return (upper ? two[1] : two[0]) + __shfl_xor_sync(0xffffffffu, upper ? two[0] : two[1], 4);
}
__device__ __forceinline__ int column_of(int lane) {
  return 8 * (lane >> 3) + 2 * (lane & 3) + ((lane >> 2) & 1);
}

/// 16 columns of a warp's rows, as stmatrix expects them.
__device__ __forceinline__ void pack_squares(std::uint32_t (&r)[4], const float (&v)[2][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) r[i] = pack_bf16(v[i >> 1][(i & 1) * 2], v[i >> 1][(i & 1) * 2 + 1]);
}

/// From r: h, and the sums over columns (dy h, dy) and rows (g, g h), where dy becomes g = dy gain.
template <int NB>
__device__ __forceinline__ void normalise(const GemmNormArgs& args, Worker& worker,
                                          float (&c)[8 * NB][4], Normalised<NB>& kept,
                                          const float2 (&stats)[2], float2 (&sum)[2], float* sums) {
  const int lane = worker.lane(), q = lane & 3, row = lane >> 2;
  const float* gains = worker.vector(0, 64 * NB) + q * 2;
#pragma unroll
  for (int chunk = 0; chunk < 2 * NB; ++chunk) {
    if (chunk * 32 >= args.columns) break;
    const std::uint32_t own = worker.wait() + worker.warp() * 2048 + row * 128 + (q & 1) * 8;
    float dyh[8], dy[8];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int n = chunk * 4 + i;
      const float2 gain = *reinterpret_cast<const float2*>(gains + n * 8);
      dyh[2 * i] = dyh[2 * i + 1] = dy[2 * i] = dy[2 * i + 1] = 0;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 r =
            worker.shared<float2>(own + half * 1024 + (((i * 2 + (q >> 1)) ^ row) << 4));
        const float2 h{(r.x - stats[half].x) * stats[half].y,
                       (r.y - stats[half].x) * stats[half].y};
        kept.put(n, half, h);
        float* g = c[n] + 2 * half;
        dyh[2 * i] += g[0] * h.x;
        dyh[2 * i + 1] += g[1] * h.y;
        dy[2 * i] += g[0];
        dy[2 * i + 1] += g[1];
        g[0] *= gain.x;
        g[1] *= gain.y;
        sum[half].x += g[0] + g[1];
        sum[half].y += g[0] * h.x + g[1] * h.y;
      }
    }
    worker.give_back();
    sums[chunk * 32] += column_sums(dyh, lane);
    sums[64 * NB + chunk * 32] += column_sums(dy, lane);
  }
}

/// 64 columns of c, times `scale`, to this lane's places in a chunk.
template <int NB>
__device__ __forceinline__ void put_chunk(const float (&c)[8 * NB][4], int chunk, float scale,
                                          std::uint32_t own) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    float v[2][4];
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i >> 2][i & 3] = scale * c[chunk * 8 + j * 2 + (i >> 2)][i & 3];
    std::uint32_t words[4];
    pack_squares(words, v);
    stmatrix_x4(own ^ (j << 5), words);
  }
}

/// `sums` f32 [args.sums, 64 NB] are the warp's; each column has its own lane.
template <int NB>
__device__ __forceinline__ void epilogue_backward(const GemmNormArgs& args, Worker& worker,
                                                  float (&c)[8 * NB][4], const float2 (&stats)[2],
                                                  float* sums, int tile) {
  constexpr int kWidth = 64 * NB;
  const int lane = worker.lane();
  const float width = static_cast<float>(args.columns);
  const float stream_scale = args.given.stream_scale, branch_scale = args.given.branch_scale;
  sums += column_of(lane);
  Normalised<NB> kept;
  float2 sum[2] = {{0, 0}, {0, 0}};  // of g and of g h
  normalise<NB>(args, worker, c, kept, stats, sum, sums);
  float mean_g[2], mean_gh[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    mean_g[half] = args.rms ? 0 : quad_sum(sum[half].x) / width;
    mean_gh[half] = quad_sum(sum[half].y) / width;
  }
  // dr replaces the accumulators; dx replaces the incoming gradient.
#pragma unroll
  for (int chunk = 0; chunk < NB; ++chunk) {
    if (chunk * 64 >= args.columns) break;
    const std::uint32_t stage = worker.wait();
    const std::uint32_t own = stage + worker.warp() * 2048 + a_offset<64>(lane);
#pragma unroll
    for (int batch = 0; batch < 2; ++batch) {
      float branch[8];
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        std::uint32_t words[4];
        ldmatrix_x4(words, own ^ ((batch * 2 + p) << 5));
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const int local = 2 * p + u, n = chunk * 8 + batch * 4 + local;
          branch[2 * local] = branch[2 * local + 1] = 0;
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const float2 incoming = unpack_bf16(words[2 * u + half]), h = kept.get(n, half);
            float* g = c[n] + 2 * half;
            g[0] = incoming.x + stats[half].y * (g[0] - mean_g[half] - h.x * mean_gh[half]);
            g[1] = incoming.y + stats[half].y * (g[1] - mean_g[half] - h.y * mean_gh[half]);
            branch[2 * local] += branch_scale * g[0];
            branch[2 * local + 1] += branch_scale * g[1];
          }
        }
      }
      if (args.sums == 3) {
        sums[2 * kWidth + (chunk * 2 + batch) * 32] += column_sums(branch, lane);
      }
    }
    if (args.given.d_branch != nullptr) {
      put_chunk<NB>(c, chunk, branch_scale, own);
      worker.send(args.d_branch, chunk * 64, tile, stage);
      if (worker.leads()) tma_store_wait_read<0>();
      sync_warpgroup(worker.group);
    }
    put_chunk<NB>(c, chunk, stream_scale, own);
    worker.send(args.dx, chunk * 64, tile, stage);
    worker.hold();
    worker.settle<1>();
  }
}

/// The block's column sums, in a fixed order: tiles, lanes, warps. `sums` f32 [warps, args.sums,
/// 64 NB].
template <int NB>
__device__ __forceinline__ void put_sums(const GemmNormArgs& args, const float* sums) {
  constexpr int kWidth = 64 * NB, kWarps = kGroups * 4;
  for (int q = 0; q < args.sums; ++q) {
    for (int c = threadIdx.x; c < args.columns; c += kWarps * 32) {
      float sum = 0;
      for (int w = 0; w < kWarps; ++w) sum += sums[(w * args.sums + q) * kWidth + c];
      args.partial[(std::int64_t{args.sums} * blockIdx.x + q) * args.columns + c] = sum;
    }
  }
}

}  // namespace fathom::engine::cuda::gemm_norm
