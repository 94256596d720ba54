// The kernels of gemm_norm.h.
//
// A warpgroup multiplies tiles of 64 rows x all columns, K in blocks of 64, and then holds whole
// rows in registers. What the norm reads and writes passes through the warpgroup's own ring of
// chunks (gemm_norm_ring.cuh), which a producer warp fills.
//
// Resident: all of b is in shared memory and a comes through the same ring. Warpgroups work
// independently, so that one multiplies while another is in its epilogue.
//
// Streamed: a and b come in stages of one block of K, which the warpgroups use in turn, a tile
// each. The blocks of a cluster advance in step and each fetches its share of b for all.
#pragma once

#include "engine/cuda/gemm/gemm_norm_epilogue_backward.cuh"
#include "engine/cuda/gemm/gemm_norm_epilogue_forward.cuh"

namespace fathom::engine::cuda::gemm_norm {

/// The chunks of one warpgroup, in the order in which it uses them.
template <bool kBackward, bool kStreamed>
__device__ __forceinline__ void fetch_chunks(const GemmNormArgs& args, const Workspace& at,
                                             int first, int step) {
  PipelineStage place;
  const auto fetch = [&](const CUtensorMap& map, int column, int tile) {
    const std::uint32_t full = at.full(place.index);
    mbarrier_wait(at.empty(place.index), place.parity ^ 1);
    mbarrier_arrive_expect_tx(full, kChunkBytes);
    tma_load_2d(at.chunk(place.index), map, column, tile * 64, full);
    place.advance(args.chunks);
  };
  for (int tile = first; tile < args.tiles; tile += step) {
    if constexpr (!kStreamed) {
      for (int kb = 0; kb < args.k_blocks; ++kb) fetch(args.a, kb * kBlock, tile);
    }
    for (int column = 0; column < args.columns; column += 32) fetch(args.stream, column, tile);
    if constexpr (kBackward) {
      for (int column = 0; column < args.columns; column += 64) fetch(args.incoming, column, tile);
    }
  }
}

/// Resident: all of b.
template <bool kBackward, int NB>
__device__ __forceinline__ void fetch_weights(const GemmNormArgs& args, const Workspace& at) {
  mbarrier_arrive_expect_tx(at.weights_full, args.k_blocks * weight_bytes(NB));
  for (int kb = 0; kb < args.k_blocks; ++kb) {
    const std::uint32_t to = at.weights + kb * weight_bytes(NB);
    if constexpr (kBackward) {
      for (int n = 0; n < NB; ++n) {
        tma_load_2d(to + n * kChunkBytes, args.b, n * 64, kb * kBlock, at.weights_full);
      }
    } else {
      tma_load_5d(to, args.b, kb * kBlock, 0, at.weights_full);
    }
  }
}

/// Streamed: this block's share of b for one block of K.
template <bool kBackward, int NB>
__device__ __forceinline__ void fetch_share(const GemmNormArgs& args, std::uint32_t to, int kb,
                                            int rank, std::uint32_t full) {
  const auto all = static_cast<std::uint16_t>((1 << args.cluster) - 1);
  if constexpr (kBackward) {  // some rows of each tile of 64 columns
    const int first = rank * (kBlock / args.cluster);
    for (int n = 0; n < NB; ++n) {
      tma_multicast_2d(to + n * kChunkBytes + first * 128, args.b, n * 64, kb * kBlock + first,
                       full, all);
    }
  } else {  // some of the groups of 16 rows
    const int first = rank * (NB * 4 / args.cluster);
    tma_multicast_5d(to + first * 16 * 128, args.b, kb * kBlock, first, full, all);
  }
}

/// Streamed: a and b, in the order in which the warpgroups take turns.
template <bool kBackward, int NB>
__device__ __forceinline__ void fetch_stream(const GemmNormArgs& args, const Workspace& at,
                                             int rank) {
  PipelineStage stage;
  for (int turn = 0; turn < args.rounds * kGroups; ++turn) {
    const int round = turn / kGroups, group = turn % kGroups;
    const int tile = static_cast<int>(blockIdx.x + round * gridDim.x) * kGroups + group;
    for (int kb = 0; kb < args.k_blocks; ++kb) {
      const std::uint32_t full = at.stage_full(stage.index);
      const std::uint32_t to = at.weights + stage.index * stage_bytes(NB);
      mbarrier_wait(at.stage_empty(stage.index), stage.parity ^ 1);
      mbarrier_arrive_expect_tx(full, stage_bytes(NB));
      tma_load_2d(to + weight_bytes(NB), args.a, kb * kBlock, tile * 64, full);
      fetch_share<kBackward, NB>(args, to, kb, rank, full);
      stage.advance(args.stages);
    }
  }
}

/// One tile: c[64 x 64 NB] over all of K. Chunks of the previous tile are released during the
/// wgmmas of the first block of K.
template <bool kBackward, int NB, bool kStreamed>
__device__ __forceinline__ void multiply(const GemmNormArgs& args, Worker& worker,
                                         PipelineStage& stage, float (&c)[8 * NB][4]) {
  constexpr int kStep = kBackward ? 128 : 2;  // a step of 16 along K, in units of 16 bytes
  const Workspace& at = worker.at;
  const int lane = worker.lane();
  PipelineStage& place = kStreamed ? stage : worker.place;
  const int size = kStreamed ? args.stages : args.chunks;
  int before = 0;
  const auto release = [&] {
    if (!kStreamed) {
      if (lane == 0) mbarrier_arrive(at.empty(before));
    } else if (lane < args.cluster) {
      mbarrier_arrive_cluster(at.stage_empty(before), lane);
    }
    __syncwarp();
  };
  for (int kb = 0; kb < args.k_blocks; ++kb) {
    mbarrier_wait(kStreamed ? at.stage_full(place.index) : at.full(place.index), place.parity);
    const std::uint32_t from = at.weights + place.index * stage_bytes(NB);
    const std::uint32_t weights = kStreamed ? from : at.weights + kb * weight_bytes(NB);
    const std::uint64_t a =
        smem_descriptor<128>(kStreamed ? from + weight_bytes(NB) : at.chunk(place.index));
    const std::uint64_t b = kBackward ? smem_descriptor_transposed<kChunkBytes>(weights)
                                      : smem_descriptor<128>(weights);
    wgmma_fence();
#pragma unroll
    for (int kk = 0; kk < kBlock / 16; ++kk) {
      wgmma<64 * NB, false, kBackward>(c, a + kk * 2, b + kk * kStep, kb > 0 || kk > 0);
    }
    wgmma_commit_group();
    if (kb == 0) {
      worker.settle<0>();
      __syncwarp();
    } else {
      wgmma_wait_group<1>();
      release();
    }
    before = place.index;
    place.advance(size);
  }
  wgmma_wait_group<0>();
  pin(c);
  release();
}

/// The work of a warpgroup that multiplies.
template <bool kBackward, int NB, bool kStreamed>
__device__ __forceinline__ void work(const GemmNormArgs& args, Worker& worker) {
  const Workspace& at = worker.at;
  float* sums = &worker.shared<float>(at.sums);
  PipelineStage stage;
  if constexpr (!kStreamed) mbarrier_wait(at.weights_full, 0);
  const int workers = static_cast<int>(gridDim.x) * kGroups;
  int tile = static_cast<int>(blockIdx.x) * kGroups + worker.group;
  for (int round = 0; round < args.rounds; ++round, tile += workers) {
    if (!kStreamed && tile >= args.tiles) break;  // the blocks of a cluster stay together
    float2 stats[2] = {{0, 0}, {0, 0}};
    if constexpr (kBackward) {
      const int row = tile * 64 + worker.warp() * 16 + (worker.lane() >> 2);
      const auto* from = reinterpret_cast<const float2*>(args.given.stats);
      if (row < args.rows) stats[0] = from[row];
      if (row + 8 < args.rows) stats[1] = from[row + 8];
    }
    float c[8 * NB][4];
    if constexpr (kStreamed) {
      // All blocks of K before this tile's have been waited for: the first warpgroup's turn comes
      // after the second's of the previous round.
      const int turn = round * kGroups + worker.group, before = turn * args.k_blocks;
      if (turn > 0)
        mbarrier_wait(at.turn(worker.group), (worker.group == 0 ? round - 1 : round) & 1);
      stage = {before % args.stages, static_cast<std::uint32_t>(before / args.stages & 1)};
    }
    multiply<kBackward, NB, kStreamed>(args, worker, stage, c);
    if (kStreamed && worker.lane() == 0) mbarrier_arrive(at.turn(1 - worker.group));
    __syncwarp();
    if (tile >= args.tiles) continue;
    if constexpr (kBackward) {
      float* own = sums + (threadIdx.x >> 5) * args.sums * 64 * NB;
      epilogue_backward<NB>(args, worker, c, stats, own, tile);
    } else {
      epilogue_forward<NB>(args, worker, c, tile);
    }
  }
  if constexpr (kBackward) {
    sync_workers();
    put_sums<NB>(args, sums);
  }
  if (worker.leads()) tma_store_wait_read<0>();
  __syncwarp();
}

template <bool kBackward, int NB, bool kStreamed>
__global__ void __launch_bounds__((kGroups + 1) * 128, 1)
    gemm_norm_kernel(const __grid_constant__ GemmNormArgs args) {
  constexpr int kWidth = 64 * NB;
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t base = shared_address(memory);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const bool fetches = warp >= kGroups * 4;  // one for each warpgroup, and one for the stream
  const int group = fetches ? min(warp - kGroups * 4, kGroups - 1) : warp >> 2;
  const Workspace at = workspace<NB, kStreamed>(args, base, group);

  if (fetches && lane == 0 && warp < kGroups * 5) {
    for (int i = 0; i < args.chunks; ++i) {
      mbarrier_init(at.full(i), 1);
      mbarrier_init(at.empty(i), 4);
    }
    if (group == 0) {
      mbarrier_init(at.weights_full, 1);
      for (int g = 0; g < kGroups; ++g) mbarrier_init(at.turn(g), 4);
      for (int s = 0; s < args.stages; ++s) {
        mbarrier_init(at.stage_full(s), 1);
        mbarrier_init(at.stage_empty(s), 4 * args.cluster);
      }
    }
    fence_mbarrier_init();
  }
  auto* vectors = &shared_at<float>(memory, base, at.vectors);
  for (int i = threadIdx.x; i < kVectors * kWidth; i += blockDim.x) {
    const float* from = i < kWidth       ? args.given.gain
                        : i < 2 * kWidth ? args.given.shift
                                         : args.given.bias;
    const int column = i % kWidth;
    vectors[i] = from != nullptr && column < args.columns ? from[column] : 0.0f;
  }
  if constexpr (kBackward) {
    auto* sums = &shared_at<float>(memory, base, at.sums);
    for (int i = threadIdx.x; i < kGroups * 4 * args.sums * kWidth; i += blockDim.x) sums[i] = 0;
  }
  __syncthreads();
  if (kStreamed) cluster_sync();

  // The warps that fetch need few registers; those that multiply take what they leave.
  if (fetches) {
    setmaxnreg_dec<40>();
    if (lane == 0) {
      if (warp < kGroups * 5) {
        if (!kStreamed && group == 0) fetch_weights<kBackward, NB>(args, at);
        fetch_chunks<kBackward, kStreamed>(args, at, static_cast<int>(blockIdx.x) * kGroups + group,
                                           static_cast<int>(gridDim.x) * kGroups);
      } else if (kStreamed && warp == kGroups * 5) {
        fetch_stream<kBackward, NB>(args, at, cluster_ctarank());
      }
    }
    __syncwarp();
  } else {
    setmaxnreg_inc<232>();
    Worker worker{at, memory, base, group, args.chunks};
    work<kBackward, NB, kStreamed>(args, worker);
  }
  // Other blocks may still arrive at this block's barriers when they are done with a stage.
  if (kStreamed) cluster_sync();
}

using Kernel = void (*)(GemmNormArgs);

/// Null where there is none: in the backward, rows of more than 192 columns do not fit in registers
/// together with h; narrow rows leave room for all of b.
template <bool kBackward>
Kernel kernel_for(int nb, bool streamed) {
  if (nb == 1 && !streamed) return gemm_norm_kernel<kBackward, 1, false>;
  if (nb == 2 && !streamed) return gemm_norm_kernel<kBackward, 2, false>;
  if (nb == 3)
    return streamed ? gemm_norm_kernel<kBackward, 3, true> : gemm_norm_kernel<kBackward, 3, false>;
  if constexpr (!kBackward) {
    if (nb == 4)
      return streamed ? gemm_norm_kernel<false, 4, true> : gemm_norm_kernel<false, 4, false>;
  }
  return nullptr;
}

/// Each is compiled by itself (gemm_norm_forward.cu, gemm_norm_backward.cu).
Kernel forward_kernel_for(int nb, bool streamed);
Kernel backward_kernel_for(int nb, bool streamed);

}  // namespace fathom::engine::cuda::gemm_norm
