// The forward of the norm for a tile of 64 rows that a warpgroup holds in registers (gemm_norm.h).
//
// b's rows are loaded in an order that gives lane q of a quad four neighbouring columns:
// accumulator c[2 j + u][2 half + e] is of column 16 j + 4 q + 2 u + e and row lane / 4 + 8 half
// (of a warp's 16). Columns beyond the last hold zeros.
#pragma once

#include "engine/cuda/gemm/gemm_norm_ring.cuh"

namespace fathom::engine::cuda::gemm_norm {

/// Replaces the accumulators by r and stores it, 32 columns at a time. Adds up the rows. The last
/// chunks, two if there are that many, stay held.
template <int NB>
__device__ __forceinline__ void add_stream(const GemmNormArgs& args, Worker& worker,
                                           float (&c)[8 * NB][4], float (&sum)[2], int tile) {
  const int lane = worker.lane(), q = lane & 3, row = lane >> 2;
  const float stream_scale = args.given.stream_scale, branch_scale = args.given.branch_scale;
  const float* biases = worker.vector(2, 64 * NB) + q * 4;
#pragma unroll
  for (int chunk = 0; chunk < 2 * NB; ++chunk) {
    if (chunk * 32 >= args.columns) break;
    const std::uint32_t stage = worker.wait();
    const std::uint32_t own = stage + worker.warp() * 2048 + row * 128;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int j = chunk * 2 + i;
      const float4 bias = *reinterpret_cast<const float4*>(biases + j * 16);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        auto& place = worker.shared<float4>(own + half * 1024 + (((i * 4 + q) ^ row) << 4));
        float* low = c[2 * j] + 2 * half;
        float* high = c[2 * j + 1] + 2 * half;
        const float4 x = place;
        low[0] = stream_scale * x.x + branch_scale * (low[0] + bias.x);
        low[1] = stream_scale * x.y + branch_scale * (low[1] + bias.y);
        high[0] = stream_scale * x.z + branch_scale * (high[0] + bias.z);
        high[1] = stream_scale * x.w + branch_scale * (high[1] + bias.w);
        place = {low[0], low[1], high[0], high[1]};
        sum[half] += (low[0] + low[1]) + (high[0] + high[1]);
      }
    }
    worker.send(args.r, chunk * 32, tile, stage);
    worker.hold();
    worker.settle<2>();
  }
}

template <int NB>
__device__ __forceinline__ void epilogue_forward(const GemmNormArgs& args, Worker& worker,
                                                 float (&c)[8 * NB][4], int tile) {
  const int lane = worker.lane(), q = lane & 3, row = lane >> 2;
  const int first = tile * 64 + worker.warp() * 16 + row;
  const float width = static_cast<float>(args.columns);
  float sum[2] = {0, 0};
  add_stream<NB>(args, worker, c, sum, tile);
  float mean[2], s[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    mean[half] = args.rms ? 0 : quad_sum(sum[half]) / width;
    float square = 0;
#pragma unroll
    for (int j = 0; j < 4 * NB; ++j) {
      if (16 * j >= args.columns) break;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float value = c[2 * j + (i >> 1)][2 * half + (i & 1)] - mean[half];
        square += value * value;
      }
    }
    s[half] = rsqrtf(quad_sum(square) / width + args.given.epsilon);
    if (q == 0 && first + half * 8 < args.rows) {
      *reinterpret_cast<float2*>(args.given.stats + 2 * std::int64_t{first + half * 8}) = {
          mean[half], s[half]};
    }
  }
  // y is stored from the held chunks in turn, once TMA has read what they hold.
  const float* gains = worker.vector(0, 64 * NB) + q * 4;
  const float* shifts = worker.vector(1, 64 * NB) + q * 4;
#pragma unroll
  for (int chunk = 0; chunk < NB; ++chunk) {
    if (chunk * 64 >= args.columns) break;
    const int turn = worker.held == 2 ? chunk & 1 : 0;
    const std::uint32_t stage = worker.at.chunk(worker.held_index(turn));
    const std::uint32_t own = stage + worker.warp() * 2048 + row * 128 + (q & 1) * 8;
    if (worker.leads()) {
      worker.held == 2 ? tma_store_wait_read<1>() : tma_store_wait_read<0>();
    }
    sync_warpgroup(worker.group);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int j = chunk * 4 + i;
      const float4 gain = *reinterpret_cast<const float4*>(gains + j * 16);
      const float4 shift = *reinterpret_cast<const float4*>(shifts + j * 16);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* low = c[2 * j] + 2 * half;
        const float* high = c[2 * j + 1] + 2 * half;
        const float m = mean[half], f = s[half];
        worker.shared<uint2>(own + half * 1024 + (((i * 2 + (q >> 1)) ^ row) << 4)) = {
            pack_bf16((low[0] - m) * f * gain.x + shift.x, (low[1] - m) * f * gain.y + shift.y),
            pack_bf16((high[0] - m) * f * gain.z + shift.z, (high[1] - m) * f * gain.w + shift.w)};
      }
    }
    worker.send(args.y, chunk * 64, tile, stage);
  }
}

}  // namespace fathom::engine::cuda::gemm_norm
