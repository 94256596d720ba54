// What the kernels of gemm_activation.h share: the division of work, the layout of shared memory,
// and the wgmmas of a block of K.
//
// A tile of results has 64 rows and the columns of its block, and one warpgroup computes it. All
// tiles in shared memory have rows of 128 bytes in the 128-byte swizzle, 64 columns each. TMA takes
// care of the edges: out of bounds it loads zeros and stores nothing.
#pragma once

#include "engine/cuda/gemm/gemm_activation.h"
#include "engine/cuda/hopper/limits.h"
#include "engine/cuda/hopper/mbarrier.cuh"
#include "engine/cuda/hopper/tma.cuh"
#include "engine/cuda/hopper/wgmma.cuh"

namespace fathom::engine::cuda::gemm_activation {

using namespace hopper;

constexpr int kRows = 64, kBlock = 64;           // of a tile; of K
constexpr int kChunkBytes = kRows * kBlock * 2;  // 64 x 64 of anything
constexpr int kSlotBytes = kChunkBytes / 4;      // the 16 rows of a warp
constexpr int kMostStages = 8;
constexpr int kRingBytes = 2 * kMostStages * 8;

/// The tiles of rows that a warpgroup takes: first, first + step and so on.
struct Share {
  int first, step, rounds;
};

/// The layout of a warpgroup's shared memory. A slot holds 64 columns of results of the warpgroup's
/// rows until they are stored; a warp uses only its own part.
struct Workspace {
  std::uint32_t weights, stages, slots, ring;
  int stage_bytes;

  __device__ __forceinline__ std::uint32_t stage(int s) const { return stages + s * stage_bytes; }
  __device__ __forceinline__ std::uint32_t full(int s) const { return ring + s * 8; }
  __device__ __forceinline__ std::uint32_t empty(int s) const {
    return ring + (kMostStages + s) * 8;
  }
  __device__ __forceinline__ std::uint32_t slot(int i) const {
    return slots + i * kChunkBytes + ((threadIdx.x >> 5) & 3) * kSlotBytes;
  }
};

/// Barriers of a ring whose stages are used by `warps` warps.
__device__ __forceinline__ void make_ring(const Workspace& at, int stages, int warps) {
  for (int s = 0; s < stages; ++s) {
    mbarrier_init(at.full(s), 1);
    mbarrier_init(at.empty(s), warps);
  }
  fence_mbarrier_init();
}

/// Synchronises all threads that multiply.
template <int THREADS>
__device__ __forceinline__ void sync_workers() {
  asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

/// The descriptor of b for a block of K.
template <bool kBackward>
__device__ __forceinline__ std::uint64_t weights_descriptor(std::uint32_t weights) {
  return kBackward ? smem_descriptor_transposed<kChunkBytes>(weights)
                   : smem_descriptor<128>(weights);
}
template <bool kBackward>
constexpr int kWeightStep = kBackward ? 128 : 2;  // a step of 16 along K, in units of 16 bytes

/// The tile of b from `column` on for a block of K.
template <bool kBackward, int COLUMNS>
__device__ __forceinline__ void fetch_weights(const GemmActivationArgs& args, std::uint32_t to,
                                              int kb, int column, std::uint32_t full) {
  if constexpr (kBackward) {  // [K, N]: tiles of 64 rows x 64 columns
    for (int i = 0; i < COLUMNS / 64; ++i) {
      tma_load_2d(to + i * kChunkBytes, args.b, column + i * 64, kb * kBlock, full);
    }
  } else {  // [N, K]: one tile
    tma_load_2d(to, args.b, kb * kBlock, column, full);
  }
}

/// The wgmmas of a block of K: c = (or +=) a b, as one group.
template <bool kBackward, int N>
__device__ __forceinline__ void multiply_block(float (&c)[N][4], std::uint32_t a, std::uint32_t b,
                                               bool add) {
  const std::uint64_t left = smem_descriptor<128>(a), right = weights_descriptor<kBackward>(b);
  wgmma_fence();
#pragma unroll
  for (int kk = 0; kk < kBlock / 16; ++kk) {
    wgmma<8 * N, false, kBackward>(c, left + kk * 2, right + kk * kWeightStep<kBackward>,
                                   add || kk > 0);
  }
  wgmma_commit_group();
}

}  // namespace fathom::engine::cuda::gemm_activation
