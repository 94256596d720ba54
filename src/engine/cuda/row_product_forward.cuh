// The norm's work on a tile of 64 rows that a warpgroup holds in registers (row_product.h).
//
// b's rows come in an order that gives the lane q of a quad four neighbouring columns: sums
// c[2 j + u][2 half + e] are of column 16 j + 4 q + 2 u + e and row lane / 4 + 8 half (of a warp's
// 16). Columns beyond the last hold zeros.
#pragma once

#include "engine/cuda/device.cuh"
#include "engine/cuda/row_product.h"

namespace fathom::engine::cuda::rows {

__device__ __forceinline__ float quad_sum(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

/// `vectors` f32 [3, 64 NB]: gain, shift and the product's bias.
template <int NB>
__device__ __forceinline__ void finish_forward(const RowArgs& args, float (&c)[8 * NB][4],
                                               const float* vectors, int tile) {
  constexpr int kWidth = 64 * NB;
  const RowOperands& given = args.given;
  const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3, own = (lane & 3) * 4;
  const int first = tile * 64 + warp * 16 + (lane >> 2);
  const float width = static_cast<float>(args.columns);
  const auto vector = [&](int which, int j) {
    return *reinterpret_cast<const float4*>(vectors + which * kWidth + 16 * j + own);
  };
  // r, in the place of the sums: all of x is read before anything is written. 8 packs are on their
  // way while 8 are used.
  constexpr int kBatch = 8, kPacks = 8 * NB;
  const std::int64_t base = static_cast<std::int64_t>(first) * args.columns + own;
  float4 packs[2][kBatch];
  const auto fetch = [&](int batch, float4 (&to)[kBatch]) {
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int half = (batch * kBatch + i) / (4 * NB), j = (batch * kBatch + i) % (4 * NB);
      to[i] = {0, 0, 0, 0};
      if (first + half * 8 < args.rows && 16 * j < args.columns) {
        to[i] = __ldcs(reinterpret_cast<const float4*>(given.x + base + half * 8 * args.columns +
                                                       16 * j));
      }
    }
  };
  float sum[2] = {0, 0};
  fetch(0, packs[0]);
#pragma unroll
  for (int batch = 0; batch < kPacks / kBatch; ++batch) {
    if ((batch + 1) * kBatch < kPacks) fetch(batch + 1, packs[(batch + 1) & 1]);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int half = (batch * kBatch + i) / (4 * NB), j = (batch * kBatch + i) % (4 * NB);
      const float4 v = packs[batch & 1][i], bias = vector(2, j);
      float* low = c[2 * j] + 2 * half;
      float* high = c[2 * j + 1] + 2 * half;
      low[0] = given.stream_scale * v.x + given.branch_scale * (low[0] + bias.x);
      low[1] = given.stream_scale * v.y + given.branch_scale * (low[1] + bias.y);
      high[0] = given.stream_scale * v.z + given.branch_scale * (high[0] + bias.z);
      high[1] = given.stream_scale * v.w + given.branch_scale * (high[1] + bias.w);
      sum[half] += (low[0] + low[1]) + (high[0] + high[1]);
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + half * 8;
    const bool holds = row < args.rows;
    const float mean = args.rms ? 0 : quad_sum(sum[half]) / width;
    float square = 0;
#pragma unroll
    for (int j = 0; j < 4 * NB; ++j) {
      if (16 * j >= args.columns) continue;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float value = c[2 * j + (i >> 1)][2 * half + (i & 1)] - mean;
        square += value * value;
      }
    }
    const float s = rsqrtf(quad_sum(square) / width + given.epsilon);
    if (holds && (lane & 3) == 0) {
      *reinterpret_cast<float2*>(given.stats + 2 * static_cast<std::int64_t>(row)) = {mean, s};
    }
    float* r = given.r + base + half * 8 * args.columns;
    auto* y = static_cast<__nv_bfloat16*>(given.y) + base + half * 8 * args.columns;
#pragma unroll
    for (int j = 0; j < 4 * NB; ++j) {
      const float4 gain = vector(0, j), shift = vector(1, j);
      const float* low = c[2 * j] + 2 * half;
      const float* high = c[2 * j + 1] + 2 * half;
      const uint2 packed{pack_bf16((low[0] - mean) * s * gain.x + shift.x,
                                   (low[1] - mean) * s * gain.y + shift.y),
                         pack_bf16((high[0] - mean) * s * gain.z + shift.z,
                                   (high[1] - mean) * s * gain.w + shift.w)};
      if (!holds || 16 * j >= args.columns) continue;
      __stcs(reinterpret_cast<float4*>(r + 16 * j), float4{low[0], low[1], high[0], high[1]});
      *reinterpret_cast<uint2*>(y + 16 * j) = packed;
    }
  }
}

}  // namespace fathom::engine::cuda::rows
