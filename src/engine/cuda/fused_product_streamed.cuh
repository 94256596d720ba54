// The kernel of fused_product.h for any K from 256 on.
//
// A block owns 256 columns and takes every so many-th pair of tiles of 64 rows, one for each of its
// two warpgroups. a and b come in blocks of 64 of K that both use. Forward, a tile may be packed
// into bf16 as soon as it is complete, bias included, which frees the registers that products sum
// in: the work on it is then done in the shadow of the next tile's products.
#pragma once

#include "engine/cuda/fused_product_finish.cuh"

namespace fathom::engine::cuda::fused {

constexpr int kWideN = 32, kWideColumns = 8 * kWideN;
constexpr int kStreamedA = 2 * kChunkBytes, kStreamedStage = kStreamedA + 4 * kChunkBytes;

__host__ __device__ constexpr int streamed_bytes(int slots, int stages) {
  return stages * kStreamedStage + 2 * slots * kChunkBytes + kWideColumns * 4 + kRingBytes;
}

template <bool kBackward>
__device__ __forceinline__ void fetch_operands(const FusedArgs& args, const Workspace& at,
                                               const Share& share, int column) {
  Place stage;
  for (int round = 0; round < share.rounds; ++round) {
    const int row = (share.first + round * share.step) * kRows;
    for (int kb = 0; kb < args.k_blocks; ++kb) {
      const std::uint32_t full = at.full(stage.index), to = at.stage(stage.index);
      wait_for(at.empty(stage.index), stage.parity ^ 1);
      arrive_expecting(full, kStreamedStage);
      load_tile(to, args.a, kb * kBlock, row, full);
      fetch_weights<kBackward, kWideColumns>(args, to + kStreamedA, kb, column, full);
      stage.advance(args.stages);
    }
  }
}

/// A warpgroup at work on tiles of 64 x 256.
template <bool kBackward, ActivationKind kKind>
struct StreamedWorker {
  const FusedArgs& args;
  const Workspace& at;
  const Share& share;
  const float* bias;
  int column, group, lane = static_cast<int>(threadIdx.x & 31), slot = 0, before = 0;
  Place stage;

  __device__ __forceinline__ int tile(int round) const { return share.first + round * share.step; }

  __device__ __forceinline__ void multiply(float (&c)[kWideN][4], int kb) {
    const std::uint32_t from = at.stage(stage.index);
    wait_for(at.full(stage.index), stage.parity);
    multiply_block<kBackward>(c, from + group * kChunkBytes, from + kStreamedA, kb > 0);
  }

  __device__ __forceinline__ void release() {
    if (lane == 0) arrive(at.empty(before));
    __syncwarp();
  }

  /// The stage of the products before the last ones is free.
  __device__ __forceinline__ void settle(int kb) {
    if (kb > 0) {
      flash::wait_products<1>();
      release();
    }
    before = stage.index;
    stage.advance(args.stages);
  }

  __device__ __forceinline__ void complete(float (&c)[kWideN][4]) {
    flash::wait_products<0>();
    flash::pin(c);
    release();
  }

  template <int CHUNK>
  __device__ __forceinline__ void finish(const std::uint32_t (&packed)[kWideN][2], int round) {
    finish_forward<kKind>(
        args, at,
        [&](int n, int i, float) {
          const float2 two = unpack_bf16(packed[CHUNK * 8 + n][i / 2]);
          return i % 2 == 0 ? two.x : two.y;
        },
        bias + CHUNK * 64, slot, tile(round), column + CHUNK * 64);
  }
  template <int CHUNK>
  __device__ __forceinline__ void finish(const float (&c)[kWideN][4], int round) {
    finish_forward<kKind>(
        args, at,
        [&](int n, int i, float b) { return fmaf(c[CHUNK * 8 + n][i], Scaled<kKind>::kScale, b); },
        bias + CHUNK * 64, slot, tile(round), column + CHUNK * 64);
  }
  template <class Tile>
  __device__ __forceinline__ void finish_all(const Tile& of, int round) {
    finish<0>(of, round);
    finish<1>(of, round);
    finish<2>(of, round);
    finish<3>(of, round);
  }

  /// A quarter of a tile's products, and of the work on the tile before.
  template <int CHUNK>
  __device__ __forceinline__ void quarter(float (&c)[kWideN][4],
                                          const std::uint32_t (&packed)[kWideN][2], int round) {
    const int first = CHUNK * args.k_blocks / 4, end = (CHUNK + 1) * args.k_blocks / 4;
    multiply(c, first);
    if (round > 0) finish<CHUNK>(packed, round - 1);
    settle(first);
    for (int kb = first + 1; kb < end; ++kb) {
      multiply(c, kb);
      settle(kb);
    }
  }

  __device__ __forceinline__ void multiply_all(float (&c)[kWideN][4]) {
    for (int kb = 0; kb < args.k_blocks; ++kb) {
      multiply(c, kb);
      settle(kb);
    }
    complete(c);
  }

  __device__ __forceinline__ void run_plain() {
    for (int round = 0; round < share.rounds; ++round) {
      float c[kWideN][4];
      multiply_all(c);
      finish_all(c, round);
    }
  }

  __device__ __forceinline__ void run_packed() {
    std::uint32_t packed[kWideN][2] = {};
    for (int round = 0; round < share.rounds; ++round) {
      float c[kWideN][4];
      quarter<0>(c, packed, round);
      quarter<1>(c, packed, round);
      quarter<2>(c, packed, round);
      quarter<3>(c, packed, round);
      complete(c);
#pragma unroll
      for (int n = 0; n < kWideN; ++n) {
        constexpr float kScale = Scaled<kKind>::kScale;
        const float2 b = *reinterpret_cast<const float2*>(bias + n * 8);
        packed[n][0] = pack_bf16(fmaf(c[n][0], kScale, b.x), fmaf(c[n][1], kScale, b.y));
        packed[n][1] = pack_bf16(fmaf(c[n][2], kScale, b.x), fmaf(c[n][3], kScale, b.y));
      }
    }
    finish_all(packed, share.rounds - 1);
  }

  __device__ __forceinline__ void run_backward(float (&sums)[kWideN][2]) {
    for (int round = 0; round < share.rounds; ++round) {
      const int at_tile = tile(round);
      float c[kWideN][4];
      Codes codes[2];
      codes[0].load(args, at_tile, column);
      codes[1].load(args, at_tile, column + 64);
      prefetch_codes(args, at_tile, column + 128);
      multiply_all(c);
      finish_backward<0>(args, at, c, sums, codes[0], slot, at_tile, column);
      codes[0].load(args, at_tile, column + 128);
      finish_backward<8>(args, at, c, sums, codes[1], slot, at_tile, column + 64);
      codes[1].load(args, at_tile, column + 192);
      finish_backward<16>(args, at, c, sums, codes[0], slot, at_tile, column + 128);
      finish_backward<24>(args, at, c, sums, codes[1], slot, at_tile, column + 192);
    }
  }
};

template <bool kBackward, ActivationKind kKind, bool kPacked>
__global__ void __launch_bounds__(384, 1) streamed_kernel(const __grid_constant__ FusedArgs args) {
#if FATHOM_WGMMA
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t base = flash::shared_address(memory);
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
    give_registers<24>();
    if (warp == 8 && lane == 0) fetch_operands<kBackward>(args, at, share, column);
  } else {
    take_registers<240>();
    StreamedWorker<kBackward, kKind> worker{args, at, share, bias + (lane & 3) * 2, column, group};
    if constexpr (kBackward) {
      float sums[kWideN][2] = {};
      worker.run_backward(sums);
      put_sums<2>(args, sums, reinterpret_cast<float*>(memory), part, column);  // stages are free
    } else if constexpr (kPacked) {
      worker.run_packed();
    } else {
      worker.run_plain();
    }
    if (lane == 0) wait_stores_read<0>();
  }
#else
  __trap();  // compiled for a GPU without these products: never launched there
#endif
}

}  // namespace fathom::engine::cuda::fused
