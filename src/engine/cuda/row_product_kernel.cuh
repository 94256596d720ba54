// The kernels of row_product.h.
//
// A warpgroup multiplies tiles of 64 rows x all columns, K in blocks of 64, and then has its rows
// whole in registers. Tiles in shared memory have rows of 128 bytes in the 128-byte swizzle.
//
// Resident: all of b lies in shared memory; each warpgroup is a worker of its own with a ring of
// tiles of a, so that one multiplies while another is busy with its results.
//
// Streamed: blocks of K of b pass by in a circle, each with the tiles of a of the warpgroups that
// use it: a warpgroup takes as many in a row as K has, beginning anywhere, and may let some pass
// while it is busy. The blocks of a cluster walk in step and each fetches its share of b for all.
//
// What the norm reads is asked for when a tile's products begin: it comes to L2 meanwhile.
#pragma once

#include "engine/cuda/row_product_backward.cuh"
#include "engine/cuda/row_product_wgmma.cuh"

namespace fathom::engine::cuda::rows {

constexpr int kBlock = 64;                    // of K
constexpr int kChunkBytes = 64 * kBlock * 2;  // 64 x 64 of anything
constexpr int kMostStages = 8, kMostGroups = 3;
constexpr int kVectors = 3;

__host__ __device__ constexpr int weight_bytes(int nb) { return nb * kChunkBytes; }  // for a block
__host__ __device__ constexpr int stage_bytes(int nb, int groups, bool streamed) {
  return streamed ? weight_bytes(nb) + groups * kChunkBytes : kChunkBytes;
}
__host__ __device__ constexpr int tail_bytes(int nb) {
  return kVectors * nb * 64 * 4 + (2 * kMostGroups * kMostStages + 1) * 8;
}
__host__ __device__ constexpr int shared_bytes(int nb, int groups, int k_blocks, int stages,
                                               bool streamed) {
  return streamed ? stages * stage_bytes(nb, groups, true) + tail_bytes(nb)
                  : k_blocks * weight_bytes(nb) + groups * stages * kChunkBytes + tail_bytes(nb);
}

/// Where a warpgroup's things lie in shared memory.
struct Workspace {
  std::uint32_t weights, stages, vectors, weights_full, ring;

  __device__ __forceinline__ std::uint32_t full(int s) const { return ring + s * 8; }
  __device__ __forceinline__ std::uint32_t empty(int s) const {
    return ring + (kMostStages + s) * 8;
  }
};

template <int NB, int GROUPS, bool kStreamed>
__device__ __forceinline__ Workspace workspace(const RowArgs& args, std::uint32_t base, int group) {
  Workspace at;
  at.weights = base;
  at.stages = base;
  if (!kStreamed) at.stages += args.k_blocks * weight_bytes(NB) + group * args.stages * kChunkBytes;
  at.vectors =
      base + shared_bytes(NB, GROUPS, args.k_blocks, args.stages, kStreamed) - tail_bytes(NB);
  at.weights_full = at.vectors + kVectors * NB * 64 * 4;
  at.ring = at.weights_full + 8 + (kStreamed ? 0 : group * 2 * kMostStages * 8);
  return at;
}

/// A place in the ring, and the parity of this time around.
struct Place {
  int index = 0;
  std::uint32_t parity = 0;
  __device__ __forceinline__ void advance(int size) {
    if (++index == size) {
      index = 0;
      parity ^= 1;
    }
  }
};

/// Whether a warpgroup uses the t-th block of K that streams by.
__device__ __forceinline__ bool uses(const RowArgs& args, int group, int t) {
  const int cycle = args.k_blocks + args.skip, since = t - group * args.offset;
  return since >= 0 && since < args.rounds * cycle && since % cycle < args.k_blocks;
}

/// Everything the norm will read of a tile, on its way to L2.
template <bool kBackward>
__device__ __forceinline__ void announce(const RowArgs& args, int tile) {
  if (tile >= args.tiles) return;
  const std::int64_t first = std::int64_t{tile} * 64 * args.columns;
  const auto size = static_cast<std::uint32_t>(min(64, args.rows - tile * 64) * args.columns);
  if constexpr (kBackward) {
    prefetch(args.given.r + first, size * 4);
    if (args.given.incoming != nullptr) {
      prefetch(static_cast<const __nv_bfloat16*>(args.given.incoming) + first, size * 2);
    }
  } else {
    prefetch(args.given.x + first, size * 4);
  }
}

/// Resident: the tiles of a of one warpgroup.
template <bool kBackward>
__device__ __forceinline__ void fetch_tiles(const RowArgs& args, const Workspace& at, int first,
                                            int step) {
  Place stage;
  for (int tile = first; tile < args.tiles; tile += step) {
    for (int kb = 0; kb < args.k_blocks; ++kb) {
      const std::uint32_t full = at.full(stage.index);
      wait_for(at.empty(stage.index), stage.parity ^ 1);
      arrive_expecting(full, kChunkBytes);
      load_tile(at.stages + stage.index * kChunkBytes, args.a, kb * kBlock, tile * 64, full);
      stage.advance(args.stages);
      if (kb == 0) announce<kBackward>(args, tile);
    }
  }
}

/// Resident: all of b.
template <bool kBackward, int NB>
__device__ __forceinline__ void fetch_weights(const RowArgs& args, const Workspace& at) {
  arrive_expecting(at.weights_full, args.k_blocks * weight_bytes(NB));
  for (int kb = 0; kb < args.k_blocks; ++kb) {
    const std::uint32_t to = at.weights + kb * weight_bytes(NB);
    if constexpr (kBackward) {
      for (int n = 0; n < NB; ++n) {
        load_tile(to + n * kChunkBytes, args.b, n * 64, kb * kBlock, at.weights_full);
      }
    } else {
      load_tile_5d(to, args.b, kb * kBlock, 0, at.weights_full);
    }
  }
}

/// Streamed: this block's share of b for one block of K.
template <bool kBackward, int NB>
__device__ __forceinline__ void fetch_share(const RowArgs& args, std::uint32_t to, int kb, int rank,
                                            std::uint32_t full) {
  const auto all = static_cast<std::uint16_t>((1 << args.cluster) - 1);
  if constexpr (kBackward) {  // some rows of each tile of 64 columns
    const int rows = kBlock / args.cluster, first = rank * rows;
    for (int n = 0; n < NB; ++n) {
      const std::uint32_t place = to + n * kChunkBytes + first * 128;
      if (args.cluster == 1) {
        load_tile(place, args.b, n * 64, kb * kBlock, full);
      } else {
        share_tile(place, args.b, n * 64, kb * kBlock + first, full, all);
      }
    }
  } else {  // some of the groups of 16 rows
    const int first = rank * (NB * 4 / args.cluster);
    if (args.cluster == 1) {
      load_tile_5d(to, args.b, kb * kBlock, 0, full);
    } else {
      share_tile_5d(to + first * 16 * 128, args.b, kb * kBlock, first, full, all);
    }
  }
}

/// Streamed: a and b for both warpgroups.
template <bool kBackward, int NB>
__device__ __forceinline__ void fetch_stream(const RowArgs& args, const Workspace& at, int rank) {
  constexpr int kStage = stage_bytes(NB, 2, true);
  const int cycle = args.k_blocks + args.skip;
  const int events = args.offset + args.rounds * cycle - args.skip;
  const auto tile_of = [&](int group, int t) {
    const int round = (t - group * args.offset) / cycle;
    return static_cast<int>((blockIdx.x + round * gridDim.x) * 2) + group;
  };
  Place stage;
  int kb = 0;
  for (int t = 0; t < events; ++t) {
    const std::uint32_t full = at.full(stage.index), to = at.stages + stage.index * kStage;
    const bool used[2] = {uses(args, 0, t), uses(args, 1, t)};
    wait_for(at.empty(stage.index), stage.parity ^ 1);
    arrive_expecting(full, weight_bytes(NB) + (int{used[0]} + int{used[1]}) * kChunkBytes);
    for (int g = 0; g < 2; ++g) {
      if (!used[g]) continue;
      const int tile = tile_of(g, t);
      load_tile(to + weight_bytes(NB) + g * kChunkBytes, args.a, kb * kBlock, tile * 64, full);
      if ((t - g * args.offset) % cycle == 0) announce<kBackward>(args, tile);
    }
    fetch_share<kBackward, NB>(args, to, kb, rank, full);
    stage.advance(args.stages);
    if (++kb == args.k_blocks) kb = 0;
  }
}

/// The products of one tile: c[64 x 64 NB] over all of K. Streamed, t counts the blocks that have
/// passed.
template <bool kBackward, int NB, bool kStreamed>
__device__ __forceinline__ void multiply(const RowArgs& args, const Workspace& at,
                                         float (&c)[8 * NB][4], Place& stage, int group, int& t) {
  constexpr int kStage = stage_bytes(NB, 2, kStreamed);
  constexpr int kStep = kBackward ? 128 : 2;  // 16 of K further, in units of 16 bytes
  const int lane = threadIdx.x & 31;
  int before = 0;
  // Who uses a block alone releases it for both.
  const auto release = [&](int index, int when) {
    if (!kStreamed) {
      if (lane == 0) arrive(at.empty(index));
    } else if (lane < args.cluster) {
      arrive_at(at.empty(index), lane, uses(args, 1 - group, when) ? 1 : 2);
    }
    __syncwarp();
  };
  for (int kb = 0; kb < args.k_blocks; ++kb, ++t) {
    wait_for(at.full(stage.index), stage.parity);
    const std::uint32_t from = at.stages + stage.index * kStage;
    const std::uint32_t weights = kStreamed ? from : at.weights + kb * weight_bytes(NB);
    const std::uint64_t a =
        flash::describe<128>(kStreamed ? from + weight_bytes(NB) + group * kChunkBytes : from);
    const std::uint64_t b =
        kBackward ? flash::describe_turned<kChunkBytes>(weights) : flash::describe<128>(weights);
    flash::begin_products();
#pragma unroll
    for (int kk = 0; kk < kBlock / 16; ++kk) {
      multiply_rows<NB, kBackward>(c, a + kk * 2, b + kk * kStep, kb > 0 || kk > 0);
    }
    flash::commit_products();
    if (kb > 0) {
      flash::wait_products<1>();
      release(before, t - 1);
    }
    before = stage.index;
    stage.advance(args.stages);
  }
  flash::wait_products<0>();
  flash::pin(c);
  release(before, t - 1);
}

template <int THREADS>
__device__ __forceinline__ void meet_workers() {
  asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

/// What a warpgroup that multiplies does.
template <bool kBackward, int NB, int GROUPS, bool kStreamed>
__device__ __forceinline__ void work(const RowArgs& args, const Workspace& at,
                                     unsigned char* memory, std::uint32_t base, int group) {
  const float* vectors = reinterpret_cast<const float*>(memory + (at.vectors - base));
  Place stage;
  int t = 0;
  float c[8 * NB][4];
  float sums[3][2 * NB] = {};
  const auto let_pass = [&](int blocks) {
    t += blocks;
    for (int i = 0; i < blocks; ++i) stage.advance(args.stages);
  };
  if constexpr (kStreamed) {
    let_pass(group * args.offset);
  } else {
    wait_for(at.weights_full, 0);
  }
  const int workers = static_cast<int>(gridDim.x) * GROUPS;
  int tile = static_cast<int>(blockIdx.x) * GROUPS + group;
  for (int round = 0; round < args.rounds; ++round, tile += workers) {
    if (!kStreamed && tile >= args.tiles) break;  // the blocks of a cluster stay together
    multiply<kBackward, NB, kStreamed>(args, at, c, stage, group, t);
    if constexpr (kBackward) {
      finish_backward<NB>(args, c, sums, vectors, tile);
    } else {
      finish_forward<NB>(args, c, vectors, tile);
    }
    if (kStreamed) let_pass(args.skip);
  }
  if constexpr (kBackward) {
    put_sums<NB, GROUPS * 4>(args, sums, reinterpret_cast<float*>(memory),
                             [] { meet_workers<GROUPS * 128>(); });
  }
}

template <bool kBackward, int NB, int GROUPS, bool kStreamed>
__global__ void __launch_bounds__((GROUPS + 1) * 128, 1)
    row_kernel(const __grid_constant__ RowArgs args) {
#if FATHOM_WGMMA
  static_assert(GROUPS == 2 || (GROUPS == 3 && !kStreamed));
  constexpr int kWidth = 64 * NB;
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t base = flash::shared_address(memory);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const bool fetches = warp >= GROUPS * 4;
  const int group = fetches ? warp - GROUPS * 4 : warp >> 2;
  const Workspace at = workspace<NB, GROUPS, kStreamed>(args, base, group);

  if (fetches && lane == 0 && group < (kStreamed ? 1 : GROUPS)) {
    for (int s = 0; s < args.stages; ++s) {
      make_barrier(at.full(s), 1);
      make_barrier(at.empty(s), kStreamed ? 8 * args.cluster : 4);
    }
    if (group == 0) make_barrier(at.weights_full, 1);
    publish_barriers();
  }
  float* vectors = reinterpret_cast<float*>(memory + (at.vectors - base));
  for (int i = threadIdx.x; i < kVectors * kWidth; i += blockDim.x) {
    const float* from = i < kWidth       ? args.given.gain
                        : i < 2 * kWidth ? args.given.shift
                                         : args.given.bias;
    const int column = i % kWidth;
    vectors[i] = from != nullptr && column < args.columns ? from[column] : 0.0f;
  }
  __syncthreads();
  if (kStreamed && args.cluster > 1) meet_cluster();

  // The warps that fetch need few registers; those that multiply take what they leave.
  if (fetches) {
    if constexpr (GROUPS == 2) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    } else {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    }
    if (lane == 0 && group < (kStreamed ? 1 : GROUPS)) {
      if constexpr (kStreamed) {
        fetch_stream<kBackward, NB>(args, at, args.cluster > 1 ? rank_in_cluster() : 0);
      } else {
        if (group == 0) fetch_weights<kBackward, NB>(args, at);
        fetch_tiles<kBackward>(args, at, static_cast<int>(blockIdx.x) * GROUPS + group,
                               static_cast<int>(gridDim.x) * GROUPS);
      }
    }
    __syncwarp();
  } else {
    if constexpr (GROUPS == 2) {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    } else {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    }
    work<kBackward, NB, GROUPS, kStreamed>(args, at, memory, base, group);
  }
  // Others may still announce to this block's barriers that they are done with a stage.
  if (kStreamed && args.cluster > 1) meet_cluster();
#else
  __trap();  // compiled for a GPU without these products: never launched there
#endif
}

using Kernel = void (*)(RowArgs);

/// Null where there is none.
template <bool kBackward>
Kernel kernel_for(int nb, int groups, bool streamed) {
  if (streamed) {
    if (groups != 2) return nullptr;
    return nb == 4   ? row_kernel<kBackward, 4, 2, true>
           : nb == 3 ? row_kernel<kBackward, 3, 2, true>
                     : Kernel{};
  }
  if (groups == 3) {
    return nb == 1   ? row_kernel<kBackward, 1, 3, false>
           : nb == 2 ? row_kernel<kBackward, 2, 3, false>
                     : Kernel{};
  }
  switch (nb) {
    case 1:
      return row_kernel<kBackward, 1, 2, false>;
    case 2:
      return row_kernel<kBackward, 2, 2, false>;
    case 3:
      return row_kernel<kBackward, 3, 2, false>;
    default:
      return row_kernel<kBackward, 4, 2, false>;
  }
}

/// Each is compiled by itself (row_product_forward.cu, row_product_backward.cu).
Kernel forward_kernel_for(int nb, int groups, bool streamed);
Kernel backward_kernel_for(int nb, int groups, bool streamed);

}  // namespace fathom::engine::cuda::rows
