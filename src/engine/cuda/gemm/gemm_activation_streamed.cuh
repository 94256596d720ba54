// The kernel of gemm_activation.h for any K of at least 256.
//
// A block owns 256 columns and takes pairs of tiles of 64 rows at a fixed stride, one tile for each
// of its two warpgroups. a and b come in blocks of 64 of K that both use.
#pragma once

#include "engine/cuda/gemm/gemm_activation_epilogue.cuh"

namespace fathom::engine::cuda::gemm_activation {

constexpr int kWideN = 32, kWideColumns = 8 * kWideN;
constexpr int kStreamedA = 2 * kChunkBytes, kStreamedStage = kStreamedA + 4 * kChunkBytes;

__host__ __device__ constexpr int streamed_bytes(int slots, int stages) {
  return stages * kStreamedStage + 2 * slots * kChunkBytes + kWideColumns * 4 + kRingBytes;
}

template <bool kBackward>
__device__ __forceinline__ void fetch_operands(const GemmActivationArgs& args, const Workspace& at,
                                               const Share& share, int column) {
  PipelineStage stage;
  for (int round = 0; round < share.rounds; ++round) {
    const int row = (share.first + round * share.step) * kRows;
    for (int kb = 0; kb < args.k_blocks; ++kb) {
      const std::uint32_t full = at.full(stage.index), to = at.stage(stage.index);
      mbarrier_wait(at.empty(stage.index), stage.parity ^ 1);
      mbarrier_arrive_expect_tx(full, kStreamedStage);
      tma_load_2d(to, args.a, kb * kBlock, row, full);
      fetch_weights<kBackward, kWideColumns>(args, to + kStreamedA, kb, column, full);
      stage.advance(args.stages);
    }
  }
}

/// A warpgroup that computes tiles of 64 x 256.
template <bool kBackward, ActivationKind kKind>
struct StreamedWorker {
  const GemmActivationArgs& args;
  const Workspace& at;
  const Share& share;
  const float* bias;
  int column, group, lane = static_cast<int>(threadIdx.x & 31), slot = 0;
  PipelineStage stage;

  __device__ __forceinline__ int tile(int round) const { return share.first + round * share.step; }

  /// A tile over all of K.
  __device__ __forceinline__ void multiply(float (&c)[kWideN][4]) {
    int before = 0;
    for (int kb = 0; kb < args.k_blocks; ++kb) {
      const std::uint32_t from = at.stage(stage.index);
      mbarrier_wait(at.full(stage.index), stage.parity);
      multiply_block<kBackward>(c, from + group * kChunkBytes, from + kStreamedA, kb > 0);
      if (kb > 0) {
        wgmma_wait_group<1>();
        release(before);
      }
      before = stage.index;
      stage.advance(args.stages);
    }
    wgmma_wait_group<0>();
    pin(c);
    release(before);
  }

  __device__ __forceinline__ void release(int s) {
    if (lane == 0) mbarrier_arrive(at.empty(s));
    __syncwarp();
  }

  __device__ __forceinline__ void run_forward() {
    for (int round = 0; round < share.rounds; ++round) {
      const int at_tile = tile(round);
      float c[kWideN][4];
      multiply(c);
      epilogue_forward<kKind, 0>(args, at, c, bias, slot, at_tile, column);
      epilogue_forward<kKind, 8>(args, at, c, bias + 64, slot, at_tile, column + 64);
      epilogue_forward<kKind, 16>(args, at, c, bias + 128, slot, at_tile, column + 128);
      epilogue_forward<kKind, 24>(args, at, c, bias + 192, slot, at_tile, column + 192);
    }
  }

  __device__ __forceinline__ void run_backward(float (&sums)[kWideN][2]) {
    for (int round = 0; round < share.rounds; ++round) {
      const int at_tile = tile(round);
      float c[kWideN][4];
      Codes codes[2];
      codes[0].load(args, at_tile, column);
      codes[1].load(args, at_tile, column + 64);
      prefetch_codes(args, at_tile, column + 128);
      multiply(c);
      epilogue_backward<0>(args, at, c, sums, codes[0], slot, at_tile, column);
      codes[0].load(args, at_tile, column + 128);
      epilogue_backward<8>(args, at, c, sums, codes[1], slot, at_tile, column + 64);
      codes[1].load(args, at_tile, column + 192);
      epilogue_backward<16>(args, at, c, sums, codes[0], slot, at_tile, column + 128);
      epilogue_backward<24>(args, at, c, sums, codes[1], slot, at_tile, column + 192);
    }
  }
};

template <bool kBackward, ActivationKind kKind>
__global__ void __launch_bounds__(384, 1)
    streamed_kernel(const __grid_constant__ GemmActivationArgs args) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t base = shared_address(memory);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const bool fetches = warp >= 8;
  const int group = fetches ? 0 : warp >> 2;
  const int part = static_cast<int>(blockIdx.x) / args.column_tiles;
  const int parts = static_cast<int>(gridDim.x) / args.column_tiles;
  const int column = static_cast<int>(blockIdx.x) % args.column_tiles * kWideColumns;
  const std::uint32_t slots = base + args.stages * kStreamedStage;
  const std::uint32_t biases = slots + 2 * args.slots * kChunkBytes;
  Workspace at;
  at.weights = 0;
  at.stages = base;
  at.stage_bytes = kStreamedStage;
  at.slots = slots + group * args.slots * kChunkBytes;
  at.ring = biases + kWideColumns * 4;
  float* bias = reinterpret_cast<float*>(memory + (biases - base));

  if (threadIdx.x == 0) make_ring(at, args.stages, 8);
  if (!kBackward) put_bias<kKind>(args, bias, column, kWideColumns);
  __syncthreads();

  const int pairs = (args.tiles + 1) / 2;
  const Share share{part * 2 + group, parts * 2, (pairs - part + parts - 1) / parts};
  if (fetches) {
    setmaxnreg_dec<24>();
    if (warp == 8 && lane == 0) fetch_operands<kBackward>(args, at, share, column);
  } else {
    setmaxnreg_inc<240>();
    StreamedWorker<kBackward, kKind> worker{args, at, share, bias + (lane & 3) * 2, column, group};
    if constexpr (kBackward) {
      float sums[kWideN][2] = {};
      worker.run_backward(sums);
      put_sums<2>(args, sums, reinterpret_cast<float*>(memory), part, column);  // stages are free
    } else {
      worker.run_forward();
    }
    if (lane == 0) tma_store_wait_read<0>();
  }
}

}  // namespace fathom::engine::cuda::gemm_activation
