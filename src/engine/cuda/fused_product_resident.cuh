// The kernel of fused_product.h for K up to 512.
//
// A block owns 128 columns and keeps b for them in shared memory. Each of its warpgroups is a
// worker of its own: it takes every so many-th tile of 64 rows, so that one multiplies while
// another is busy with its results; a warp beside each fetches its tiles of a (64 rows x 64 of K),
// and on the way back its tiles of pre.
#pragma once

#include "engine/cuda/fused_product_parts.cuh"

namespace fathom::engine::cuda::fused {

constexpr int kWorkerBarriers = 2 * kMostStages + 2 * kMostBuffers;  // of a worker
constexpr int kResidentTail = kColumns * 4 + (kMostGroups * kWorkerBarriers + 1) * 8;

__host__ __device__ constexpr int resident_bytes(int k_blocks, int groups, int buffers,
                                                 int stages) {
  return k_blocks * kWeightBytes + groups * (buffers * kBufferBytes + stages * kChunkBytes) +
         kResidentTail;
}

__device__ __forceinline__ Workspace resident_workspace(const FusedArgs& args, std::uint32_t base,
                                                        int groups, int group) {
  const int own = args.buffers * kBufferBytes + args.stages * kChunkBytes;
  const std::uint32_t owns = base + args.k_blocks * kWeightBytes;
  Workspace at;
  at.weights = base;
  at.buffers = owns + group * own;
  at.stages = at.buffers + args.buffers * kBufferBytes;
  at.bias = owns + groups * own;
  at.weights_full = at.bias + kColumns * 4;
  at.ring = at.weights_full + 8 + group * kWorkerBarriers * 8;
  at.tickets = at.ring + 2 * kMostStages * 8;
  return at;
}

template <bool kBackward>
__device__ __forceinline__ void fetch(const FusedArgs& args, const Workspace& at, Share share,
                                      int column) {
  Place stage, buffer;
  for (int tile = share.first; tile < args.tiles; tile += share.step) {
    for (int kb = 0; kb < args.k_blocks; ++kb) {
      wait_for(at.empty(stage.index), stage.parity ^ 1);
      arrive_expecting(at.full(stage.index), kChunkBytes);
      load_tile(at.stage(stage.index), args.a, kb * kBlock, tile * kRows, at.full(stage.index));
      stage.advance(args.stages);
    }
    if constexpr (kBackward) {
      fetch_pre(args, at, buffer, tile, column);
      buffer.advance(args.buffers);
    }
  }
}

/// The products of one tile: c[64 x 128] over all of K.
template <bool kBackward, class Between>
__device__ __forceinline__ void multiply(const FusedArgs& args, const Workspace& at,
                                         float (&c)[16][4], Place& stage, const Between& between) {
  const bool one_a_warp = (threadIdx.x & 31) == 0;
  int before = 0;
  for (int kb = 0; kb < args.k_blocks; ++kb) {
    wait_for(at.full(stage.index), stage.parity);
    const std::uint64_t a = flash::describe<128>(at.stage(stage.index));
    const std::uint64_t b = describe_weights<kBackward>(at.weights + kb * kWeightBytes);
    flash::begin_products();
#pragma unroll
    for (int kk = 0; kk < kBlock / 16; ++kk) {
      flash::multiply_wide<kBackward>(c, a + kk * 2, b + kk * kWeightStep<kBackward>,
                                      kb > 0 || kk > 0);
    }
    flash::commit_products();
    if (kb == 0) {
      between();
    } else {
      flash::wait_products<1>();
      if (one_a_warp) arrive(at.empty(before));
    }
    __syncwarp();
    before = stage.index;
    stage.advance(args.stages);
  }
  flash::wait_products<0>();
  flash::pin(c);
  if (one_a_warp) arrive(at.empty(before));
  __syncwarp();
}

template <bool kBackward, ActivationKind kKind, int GROUPS>
__global__ void __launch_bounds__(GROUPS * 160, 1)
    resident_kernel(const __grid_constant__ FusedArgs args) {
#if FATHOM_WGMMA
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t base = flash::shared_address(memory);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const bool fetches = warp >= GROUPS * 4;
  const int group = fetches ? warp - GROUPS * 4 : warp >> 2;
  const int part = blockIdx.x / args.column_tiles, parts = gridDim.x / args.column_tiles;
  const int column = static_cast<int>(blockIdx.x) % args.column_tiles * kColumns;
  const Workspace at = resident_workspace(args, base, GROUPS, group);
  float* bias = reinterpret_cast<float*>(memory + (at.bias - base));

  if (fetches && lane == 0) {
    for (int s = 0; s < args.stages; ++s) {
      make_barrier(at.full(s), 1);
      make_barrier(at.empty(s), 4);
    }
    for (int i = 0; i < args.buffers; ++i) {
      make_barrier(at.buffer_full(i), 1);
      make_barrier(at.buffer_empty(i), 1);
    }
    if (group == 0) make_barrier(at.weights_full, 1);
    publish_barriers();
  }
  if (threadIdx.x < kColumns) {
    const int c = column + static_cast<int>(threadIdx.x);
    bias[threadIdx.x] = args.bias != nullptr && c < args.columns ? args.bias[c] : 0.0f;
  }
  __syncthreads();

  const Share share{part * GROUPS + group, parts * GROUPS};
  if (fetches) {
    if (lane != 0) return;
    if (group == 0) {
      arrive_expecting(at.weights_full, args.k_blocks * kWeightBytes);
      for (int kb = 0; kb < args.k_blocks; ++kb) {
        fetch_weights<kBackward>(args, at.weights + kb * kWeightBytes, kb, column, at.weights_full);
      }
    }
    fetch<kBackward>(args, at, share, column);
    return;
  }
  const float* own_bias = bias + (lane & 3) * 2;
  const bool leader = threadIdx.x % 128 == 0;
  Place stage, buffer, last_buffer;
  float sums[16][2] = {};
  wait_for(at.weights_full, 0);
  for (int tile = share.first; tile < args.tiles; tile += share.step) {
    float c[16][4];
    multiply<kBackward>(args, at, c, stage, [&] {
      if (!kBackward || !leader || tile == share.first) return;
      wait_stores_read<0>();  // of the tile before: its buffer may be filled again
      arrive(at.buffer_empty(last_buffer.index));
    });
    if constexpr (kBackward) {
      finish_backward<kKind>(args, at, c, sums, own_bias, buffer, group, tile, column);
      last_buffer = buffer;
      buffer.advance(args.buffers);
    } else {
      finish_forward<kKind>(args, at, c, own_bias, buffer, group, tile, column);
    }
  }
  if constexpr (kBackward) {
    meet_block<GROUPS * 128>();  // b has been used for the last time
    put_sums(args, sums, reinterpret_cast<float*>(memory), 0, GROUPS * 4, part, column,
             [] { meet_block<GROUPS * 128>(); });
  }
  if (leader) wait_stores_read<0>();
#else
  __trap();  // compiled for a GPU without these products: never launched there
#endif
}

}  // namespace fathom::engine::cuda::fused
