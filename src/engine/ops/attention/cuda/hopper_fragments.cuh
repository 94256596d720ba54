// What the attention kernels do with the accumulators of wgmma.
#pragma once

#include "engine/cuda/hopper/mbarrier.cuh"
#include "engine/cuda/hopper/tma.cuh"
#include "engine/cuda/hopper/wgmma.cuh"
#include "engine/ops/attention/cuda/flash_tiles.cuh"
#include "engine/ops/attention/cuda/hopper_maps.h"

namespace fathom::engine::cuda::flash {

using namespace hopper;

/// Columns 16 kk .. 16 kk + 15 of c as an a operand.
__device__ __forceinline__ void pack_columns(std::uint32_t (&a)[4], const float (&c)[8][4],
                                             int kk) {
  a[0] = pack(c[2 * kk][0], c[2 * kk][1]);
  a[1] = pack(c[2 * kk][2], c[2 * kk][3]);
  a[2] = pack(c[2 * kk + 1][0], c[2 * kk + 1][1]);
  a[3] = pack(c[2 * kk + 1][2], c[2 * kk + 1][3]);
}

/// This warp's 16 rows of c, the first 8 times `upper`, the others times `lower`, as bf16; the
/// lanes of a quad share 32 bytes of a row.
template <int N>
__device__ __forceinline__ void store_fragment(const float (&c)[N][4], float upper, float lower,
                                               bf16* to, std::int64_t stride, int rows_left,
                                               int columns_left, int lane) {
  const bool odd = lane & 1;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = half * 8 + (lane >> 2);
    const float factor = half == 0 ? upper : lower;
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      const std::uint32_t a = pack(c[n][2 * half] * factor, c[n][2 * half + 1] * factor);
      const std::uint32_t b = pack(c[n + 1][2 * half] * factor, c[n + 1][2 * half + 1] * factor);
      const std::uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? a : b, 1);
      const int chunk = n + (odd ? 1 : 0);
      if (row < rows_left && chunk * 8 < columns_left) {
        *reinterpret_cast<uint2*>(to + row * stride + chunk * 8 + (lane & 2) * 2) =
            odd ? uint2{other, b} : uint2{a, other};
      }
    }
  }
}

template <class T, int N>
__device__ __forceinline__ void clear(T (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) c[n][i] = 0;
  }
}

/// Adds one to a number in shared memory and returns its old value; this thread's earlier reads are
/// complete for any thread that sees the sum.
__device__ __forceinline__ int count_one(std::uint32_t number) {
  int before;
  asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "r"(number)
               : "memory");
  return before;
}

}  // namespace fathom::engine::cuda::flash
