// The kernel of gemm_activation.h for K up to 512.
//
// A block owns 128 columns and keeps b for them in shared memory. Its warpgroups work
// independently: each takes tiles of 64 rows at a fixed stride, so that one multiplies while others
// are in their epilogues; a producer warp for each fetches its tiles of a (64 rows x 64 of K).
#pragma once

#include "engine/cuda/gemm/gemm_activation_epilogue.cuh"

namespace fathom::engine::cuda::gemm_activation {

constexpr int kN = 16, kColumns = 8 * kN, kWeightBytes = kColumns * kBlock * 2;

__host__ __device__ constexpr int resident_bytes(int k_blocks, int groups, int slots, int stages) {
  return k_blocks * kWeightBytes + groups * (slots + stages) * kChunkBytes + kColumns * 4 + 8 +
         groups * kRingBytes;
}

/// b first, then slots and stages of each warpgroup, biases, barriers.
struct ResidentWorkspace : Workspace {
  std::uint32_t biases, weights_full;

  __device__ __forceinline__ ResidentWorkspace(const GemmActivationArgs& args, std::uint32_t base,
                                               int groups, int group) {
    const std::uint32_t owns = base + args.k_blocks * kWeightBytes;
    biases = owns + groups * (args.slots + args.stages) * kChunkBytes;
    weights_full = biases + kColumns * 4;
    weights = base;
    stages = owns + group * (args.slots + args.stages) * kChunkBytes;
    stage_bytes = kChunkBytes;
    slots = stages + args.stages * kChunkBytes;
    ring = weights_full + 8 + group * kRingBytes;
  }
};

/// All of b for the block's columns.
template <bool kBackward>
__device__ __forceinline__ void fetch_all_weights(const GemmActivationArgs& args,
                                                  const Workspace& at, int column,
                                                  std::uint32_t full) {
  mbarrier_arrive_expect_tx(full, args.k_blocks * kWeightBytes);
  for (int kb = 0; kb < args.k_blocks; ++kb) {
    fetch_weights<kBackward, kColumns>(args, at.weights + kb * kWeightBytes, kb, column, full);
  }
}

__device__ __forceinline__ void fetch(const GemmActivationArgs& args, const Workspace& at,
                                      const Share& share) {
  PipelineStage stage;
  for (int round = 0; round < share.rounds; ++round) {
    const int row = (share.first + round * share.step) * kRows;
    for (int kb = 0; kb < args.k_blocks; ++kb) {
      const std::uint32_t full = at.full(stage.index);
      mbarrier_wait(at.empty(stage.index), stage.parity ^ 1);
      mbarrier_arrive_expect_tx(full, kChunkBytes);
      tma_load_2d(at.stage(stage.index), args.a, kb * kBlock, row, full);
      stage.advance(args.stages);
    }
  }
}

/// A tile over all of K.
template <bool kBackward>
__device__ __forceinline__ void multiply(const GemmActivationArgs& args, const Workspace& at,
                                         float (&c)[kN][4], PipelineStage& stage) {
  const bool leader = (threadIdx.x & 31) == 0;
  int before = 0;
  for (int kb = 0; kb < args.k_blocks; ++kb) {
    mbarrier_wait(at.full(stage.index), stage.parity);
    multiply_block<kBackward>(c, at.stage(stage.index), at.weights + kb * kWeightBytes, kb > 0);
    if (kb > 0) {
      wgmma_wait_group<1>();
      if (leader) mbarrier_arrive(at.empty(before));
    }
    __syncwarp();
    before = stage.index;
    stage.advance(args.stages);
  }
  wgmma_wait_group<0>();
  pin(c);
  if (leader) mbarrier_arrive(at.empty(before));
  __syncwarp();
}

template <bool kBackward, ActivationKind kKind, int GROUPS>
__global__ void __launch_bounds__((GROUPS + 1) * 128, 1)
    resident_kernel(const __grid_constant__ GemmActivationArgs args) {
  // Redistributes the registers that the block was launched with: 168, 128 or 96 per thread.
  constexpr int kOwnRegisters = GROUPS == 2 ? 240 : GROUPS == 3 ? 160 : 112;
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t base = shared_address(memory);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const bool fetches = warp >= GROUPS * 4, starts = lane == 0 && fetches && warp < GROUPS * 5;
  const int group = fetches ? warp - GROUPS * 4 : warp >> 2;
  const int part = static_cast<int>(blockIdx.x) / args.column_tiles;
  const int parts = static_cast<int>(gridDim.x) / args.column_tiles;
  const int column = static_cast<int>(blockIdx.x) % args.column_tiles * kColumns;

  const ResidentWorkspace at(args, base, GROUPS, group);
  float* bias = reinterpret_cast<float*>(memory + (at.biases - base));

  if (starts) {
    if (group == 0) mbarrier_init(at.weights_full, 1);
    make_ring(at, args.stages, 4);
  }
  if (!kBackward) put_bias<kKind>(args, bias, column, kColumns);
  __syncthreads();

  Share share{part * GROUPS + group, parts * GROUPS, 0};
  share.rounds = max(0, (args.tiles - share.first + share.step - 1) / share.step);
  if (fetches) {
    setmaxnreg_dec<GROUPS == 3 ? 32 : 24>();
    if (!starts) return;
    if (group == 0) fetch_all_weights<kBackward>(args, at, column, at.weights_full);
    fetch(args, at, share);
  } else {
    setmaxnreg_inc<kOwnRegisters>();
    PipelineStage stage;
    int slot = 0;
    [[maybe_unused]] float sums[kBackward ? kN : 1][2] = {};
    bias += (lane & 3) * 2;
    mbarrier_wait(at.weights_full, 0);
    for (int round = 0; round < share.rounds; ++round) {
      const int tile = share.first + round * share.step;
      float c[kN][4];
      if constexpr (kBackward) {
        Codes codes[2];
        codes[0].load(args, tile, column);
        codes[1].load(args, tile, column + 64);
        prefetch_codes(args, tile + share.step, column);
        multiply<kBackward>(args, at, c, stage);
        epilogue_backward<0>(args, at, c, sums, codes[0], slot, tile, column);
        epilogue_backward<8>(args, at, c, sums, codes[1], slot, tile, column + 64);
      } else {
        multiply<kBackward>(args, at, c, stage);
        epilogue_forward<kKind, 0>(args, at, c, bias, slot, tile, column);
        epilogue_forward<kKind, 8>(args, at, c, bias + 64, slot, tile, column + 64);
      }
    }
    if constexpr (kBackward) {  // b is no longer needed
      put_sums<GROUPS>(args, sums, reinterpret_cast<float*>(memory), part, column);
    }
    if (lane == 0) tma_store_wait_read<0>();
  }
}

}  // namespace fathom::engine::cuda::gemm_activation
