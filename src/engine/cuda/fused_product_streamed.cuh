// The kernel of fused_product.h for any K.
//
// A block owns 256 columns and takes every so many-th tile of 128 rows. a and b come in blocks of
// 64 of K that both warpgroups use: a warpgroup has all rows and half of the columns of a tile, as
// two tiles of 64 x 128, which it finishes one after the other. One warp fetches a and b, one
// fetches pre.
#pragma once

#include "engine/cuda/fused_product_parts.cuh"

namespace fathom::engine::cuda::fused {

/// The warps that fetch need few registers; those that multiply take what they leave.
template <int COUNT>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

constexpr int kStreamedStage = 2 * kChunkBytes + 2 * kWeightBytes;  // a, b
constexpr int kStreamedTail =
    2 * kColumns * 4 + (2 * kMostStages + 2 * 2 * kMostBuffers) * 8;  // biases, barriers

__host__ __device__ constexpr int streamed_bytes(int buffers, int stages) {
  return stages * kStreamedStage + 2 * buffers * kBufferBytes + kStreamedTail;
}

__device__ __forceinline__ Workspace streamed_workspace(const FusedArgs& args, std::uint32_t base,
                                                        int group) {
  Workspace at;
  at.stages = at.weights = base;
  at.buffers = base + args.stages * kStreamedStage + group * args.buffers * kBufferBytes;
  const std::uint32_t biases =
      base + args.stages * kStreamedStage + 2 * args.buffers * kBufferBytes;
  at.bias = biases + group * kColumns * 4;
  at.ring = biases + 2 * kColumns * 4;
  at.tickets = at.ring + 2 * kMostStages * 8 + group * 2 * kMostBuffers * 8;
  at.weights_full = 0;
  return at;
}

template <bool kBackward>
__device__ __forceinline__ void fetch_operands(const FusedArgs& args, const Workspace& at,
                                               Share share, int column) {
  Place stage;
  for (int tile = share.first; tile * 2 < args.tiles; tile += share.step) {
    for (int kb = 0; kb < args.k_blocks; ++kb) {
      const std::uint32_t full = at.full(stage.index);
      const std::uint32_t to = at.stages + stage.index * kStreamedStage;
      wait_for(at.empty(stage.index), stage.parity ^ 1);
      arrive_expecting(full, kStreamedStage);
      for (int half = 0; half < 2; ++half) {
        load_tile(to + half * kChunkBytes, args.a, kb * kBlock, (tile * 2 + half) * kRows, full);
        fetch_weights<kBackward>(args, to + 2 * kChunkBytes + half * kWeightBytes, kb,
                                 column + half * kColumns, full);
      }
      stage.advance(args.stages);
    }
  }
}

/// The products of one tile: c[half][64 x 128] over all of K.
template <bool kBackward, class Between>
__device__ __forceinline__ void multiply_streamed(const FusedArgs& args, const Workspace& at,
                                                  float (&c)[2][16][4], Place& stage, int group,
                                                  const Between& between) {
  const bool one_a_warp = (threadIdx.x & 31) == 0;
  int before = 0;
  for (int kb = 0; kb < args.k_blocks; ++kb) {
    wait_for(at.full(stage.index), stage.parity);
    const std::uint32_t from = at.stages + stage.index * kStreamedStage;
    const std::uint64_t a = flash::describe<128>(from);
    const std::uint64_t b =
        describe_weights<kBackward>(from + 2 * kChunkBytes + group * kWeightBytes);
    flash::begin_products();
#pragma unroll
    for (int kk = 0; kk < kBlock / 16; ++kk) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        flash::multiply_wide<kBackward>(c[half], a + half * (kChunkBytes / 16) + kk * 2,
                                        b + kk * kWeightStep<kBackward>, kb > 0 || kk > 0);
      }
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
  flash::pin(c[0]);
  flash::pin(c[1]);
  if (one_a_warp) arrive(at.empty(before));
  __syncwarp();
}

/// pre of both warpgroups' tiles.
__device__ __forceinline__ void fetch_pres(const FusedArgs& args, std::uint32_t base, Share share,
                                           int column) {
  Place buffer;
  for (int tile = share.first; tile * 2 < args.tiles; tile += share.step) {
    for (int half = 0; half < 2 && tile * 2 + half < args.tiles; ++half) {
      for (int g = 0; g < 2; ++g) {
        fetch_pre(args, streamed_workspace(args, base, g), buffer, tile * 2 + half,
                  column + g * kColumns);
      }
      buffer.advance(args.buffers);
    }
  }
}

/// What the warpgroups that multiply do.
template <bool kBackward, ActivationKind kKind>
__device__ __forceinline__ void work(const FusedArgs& args, const Workspace& at,
                                     unsigned char* memory, std::uint32_t base, Share share,
                                     int part, int first_column, int group) {
  const int lane = threadIdx.x & 31;
  const int column = first_column + group * kColumns;
  const float* bias = reinterpret_cast<const float*>(memory + (at.bias - base)) + (lane & 3) * 2;
  const bool leader = threadIdx.x % 128 == 0;
  Place stage, buffer;
  float sums[16][2] = {};
  for (int tile = share.first; tile * 2 < args.tiles; tile += share.step) {
    float c[2][16][4];
    multiply_streamed<kBackward>(args, at, c, stage, group, [&] {
      if (!kBackward || !leader || tile == share.first) return;
      wait_stores_read<0>();  // of the tile before: its buffers, all there are, may be filled again
      for (int i = 0; i < args.buffers; ++i) arrive(at.buffer_empty(i));
    });
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (tile * 2 + half >= args.tiles) break;
      if constexpr (kBackward) {
        finish_backward<kKind>(args, at, c[half], sums, bias, buffer, group, tile * 2 + half,
                               column);
        buffer.advance(args.buffers);
      } else {
        finish_forward<kKind>(args, at, c[half], bias, buffer, group, tile * 2 + half, column);
      }
    }
  }
  if constexpr (kBackward) {
    meet_block<256>();  // all stages have been used for the last time
    put_sums(args, sums, reinterpret_cast<float*>(memory) + group * 4 * kColumns, group * 4, 4,
             part, column, [group] { meet(group); });
  }
  if (leader) wait_stores_read<0>();
}

template <bool kBackward, ActivationKind kKind>
__global__ void __launch_bounds__(384, 1) streamed_kernel(const __grid_constant__ FusedArgs args) {
#if FATHOM_WGMMA
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t base = flash::shared_address(memory);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, group = warp >> 2;
  const int part = blockIdx.x / args.column_tiles, parts = gridDim.x / args.column_tiles;
  const int first_column = static_cast<int>(blockIdx.x) % args.column_tiles * 2 * kColumns;
  const Workspace at = streamed_workspace(args, base, group);

  if (threadIdx.x == 0) {
    for (int s = 0; s < args.stages; ++s) {
      make_barrier(at.full(s), 1);
      make_barrier(at.empty(s), 8);
    }
    for (int g = 0; g < 2; ++g) {
      const Workspace of = streamed_workspace(args, base, g);
      for (int i = 0; i < args.buffers; ++i) {
        make_barrier(of.buffer_full(i), 1);
        make_barrier(of.buffer_empty(i), 1);
      }
    }
    publish_barriers();
  }
  if (threadIdx.x < 2 * kColumns) {
    const int c = first_column + static_cast<int>(threadIdx.x);
    float* biases =
        reinterpret_cast<float*>(memory + (streamed_workspace(args, base, 0).bias - base));
    biases[threadIdx.x] = args.bias != nullptr && c < args.columns ? args.bias[c] : 0.0f;
  }
  __syncthreads();

  const Share share{part, parts};
  if (warp >= 8) {
    give_registers<40>();
    if (warp == 8 && lane == 0) fetch_operands<kBackward>(args, at, share, first_column);
    if (kBackward && warp == 9 && lane == 0) fetch_pres(args, base, share, first_column);
  } else {
    take_registers<232>();
    work<kBackward, kKind>(args, at, memory, base, share, part, first_column, group);
  }
#else
  __trap();  // compiled for a GPU without these products: never launched there
#endif
}

}  // namespace fathom::engine::cuda::fused
