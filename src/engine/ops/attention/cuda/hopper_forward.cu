// Softmax attention forward on wgmma and TMA: a block takes 64 GROUPS queries of a head, a
// warpgroup 64 of them, and walks over tiles of BK keys.
//
// Every row keeps a reference m, near the largest score so far, and a sum l (arXiv:2205.14135):
//   p_j = 2^(c s_j - c m);  l += sum p;  o += p V;   c = scale log2(e);   y = o / l.
// m moves, and o and l shrink, only where p would exceed 2^8: p stays far from overflow, bf16
// rounds p relative to itself, and most tiles leave o alone.
//
// With OVERLAP the weights of a tile are made while the wgmmas p V of the previous tile run;
// several warpgroups on a multiprocessor overlap in any case. Tiles come by TMA through a ring of
// STAGES, refilled by the last warp to finish with a tile: no thread waits to load, and warpgroups
// may drift apart.
#include "core/error.h"
#include "engine/ops/attention/cuda/hopper_fragments.cuh"

namespace fathom::engine::cuda::flash {
namespace {

template <int KP_, int GROUPS_, int BK_, int STAGES_, int BLOCKS_, bool OVERLAP_>
struct Shape {
  static constexpr int KP = KP_, GROUPS = GROUPS_, BK = BK_, STAGES = STAGES_;
  static constexpr int BLOCKS = BLOCKS_;        // per multiprocessor
  static constexpr bool OVERLAP = OVERLAP_;     // weights of a tile during the sums before it
  static constexpr int PC = KP < 64 ? KP : 64;  // columns of a panel: one row of a swizzle
  static constexpr int PANELS = KP / PC, PARTS = BK / 64;
  // The queries are held in registers if they fit next to o, s, p and 32 for the rest.
  static constexpr int kRegisters = 512 / (GROUPS * BLOCKS) / 8 * 8;
  static constexpr bool HELD = KP / 2 + BK / 2 + BK / 4 + KP / 4 + 32 <= kRegisters;
  static constexpr int kThreads = 128 * GROUPS, kRows = 64 * GROUPS;
  static constexpr int kQPanel = 64 * PC * 2, kQGroup = kQPanel * PANELS;
  static constexpr int kPanel = BK * PC * 2, kTile = kPanel * PANELS;
  static constexpr int kKeys = GROUPS * kQGroup;                // the ring comes after the queries
  static constexpr int kBarriers = kKeys + STAGES * 2 * kTile;  // k and v per stage
  static constexpr int kCounts = kBarriers + 8 * (STAGES + 1);
  static constexpr int kBytes = kCounts + 4 * STAGES + 1024;  // the base is rounded up
  static_assert(BK % kBoxRows == 0 && STAGES > 1);
};

/// The keys [first, end) of tiles that the queries [row, row + rows) reach; empty beyond T.
struct Reach {
  int first, end;

  __device__ __forceinline__ Reach(const FlashArgs& args, int row, int rows, int tile) {
    first = max(0, row - args.below) / tile;
    const int keys = min(args.context, min(args.context, row + rows) + args.above);
    end = row < args.context ? max(first, (max(0, keys) + tile - 1) / tile) : first;
  }
};

/// -inf where query row0 + r does not see key key0 + c; without EARLY no key may lie below the
/// band.
template <bool EARLY, int PARTS>
__device__ __forceinline__ void mask(float (&s)[PARTS][8][4], const FlashArgs& args, int row0,
                                     int key0, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = row0 + half * 8 + (lane >> 2), at = key0 + (lane & 3) * 2;
    const int last = min(i + args.above, args.context - 1) - at;
    const int first = i - args.below - at;
#pragma unroll
    for (int n = 0; n < PARTS * 8; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int j = n * 8 + e;
        if (j > last || (EARLY && j < first)) s[n / 8][n % 8][2 * half + e] = -INFINITY;
      }
    }
  }
}

struct Rows {  // of a thread: r and r + 8
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  float shrink[2];  // of what was summed before the last tile

  /// Moves the references if a score far exceeds them; returns whether any of this warp's moved.
  template <int PARTS>
  __device__ __forceinline__ bool look(const float (&s)[PARTS][8][4], float scale_log2) {
    bool moved = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float best = -INFINITY, other = -INFINITY;
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          best = fmaxf(best, s[part][n][2 * half]);
          other = fmaxf(other, s[part][n][2 * half + 1]);
        }
      }
      best = quad_max(fmaxf(best, other));
      const bool moves = (best - top[half]) * scale_log2 > 8.0f;  // false for -inf after -inf
      shrink[half] = moves ? exp2_fast((top[half] - best) * scale_log2) : 1.0f;
      top[half] = moves ? best : top[half];
      moved = moved || moves;
    }
    return __any_sync(0xffffffffu, moved);
  }

  /// Turns scores into weights, and adds those up.
  template <int PARTS>
  __device__ __forceinline__ void weigh(float (&s)[PARTS][8][4], float scale_log2) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float base = top[half] == -INFINITY ? 0.0f : top[half] * scale_log2;
      float added[2] = {0, 0};
#pragma unroll
      for (int n = 0; n < PARTS * 8; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[n / 8][n % 8][2 * half + e];
          const float power = fmaf(x, scale_log2, -base);
          x = exp2_fast(power);
          added[e] += x;
        }
      }
      sum[half] = fmaf(sum[half], shrink[half], added[0] + added[1]);
    }
  }
};

/// The queries of a warp as left operand, in registers if HELD.
template <class S>
struct Queries {
  std::uint32_t r[S::HELD ? S::KP / 16 : 1][4];
  std::uint32_t tile;

  __device__ __forceinline__ void load(std::uint32_t own_tile, int warp, int lane) {
    tile = own_tile;
    if constexpr (S::HELD) {
      const std::uint32_t at = tile + (warp & 3) * 16 * S::PC * 2 + a_offset<S::PC>(lane);
#pragma unroll
      for (int kk = 0; kk < S::KP / 16; ++kk) {
        const int panel = kk * 16 / S::PC, step = kk - panel * S::PC / 16;
        ldmatrix_x4(r[kk], (at ^ (step << 5)) + panel * S::kQPanel);
      }
    }
  }
};

/// One group: s[64 x BK] = q[64 x KP] keys[BK x KP]^T.
template <class S>
__device__ __forceinline__ void begin_scores(float (&s)[S::PARTS][8][4], const Queries<S>& q,
                                             std::uint32_t keys) {
  const std::uint64_t left = smem_descriptor<S::PC * 2>(q.tile),
                      right = smem_descriptor<S::PC * 2>(keys);
  wgmma_fence();
#pragma unroll
  for (int part = 0; part < S::PARTS; ++part) {
#pragma unroll
    for (int kk = 0; kk < S::KP / 16; ++kk) {
      const int panel = kk * 16 / S::PC, step = kk - panel * S::PC / 16;
      const std::uint64_t b = right + (panel * S::kPanel + part * 64 * S::PC * 2) / 16 + step * 2;
      if constexpr (S::HELD) {
        wgmma<64, false>(s[part], q.r[kk], b, kk > 0);
      } else {
        wgmma<64, false, false>(s[part], left + panel * S::kQPanel / 16 + step * 2, b, kk > 0);
      }
    }
  }
  wgmma_commit_group();
}

/// One group: o[64 x KP] += p[64 x BK] values[BK x KP].
template <class S>
__device__ __forceinline__ void begin_sums(float (&o)[S::PANELS][S::PC / 8][4],
                                           const std::uint32_t (&p)[S::BK / 16][4],
                                           std::uint32_t values) {
  const std::uint64_t rows = smem_descriptor<S::PC * 2>(values);
  wgmma_fence();
#pragma unroll
  for (int kk = 0; kk < S::BK / 16; ++kk) {
#pragma unroll
    for (int panel = 0; panel < S::PANELS; ++panel) {
      wgmma<S::PC, true>(o[panel], p[kk], rows + panel * S::kPanel / 16 + kk * S::PC * 2, true);
    }
  }
  wgmma_commit_group();
}

/// The ring of key tiles: tile t has stage (t - first) mod STAGES.
template <class S>
struct Ring {
  std::uint32_t base;
  int head, b, first, end;

  __device__ __forceinline__ int stage(int tile) const {
    return static_cast<int>(static_cast<unsigned>(tile - first) % S::STAGES);
  }
  __device__ __forceinline__ int round(int tile) const {
    return static_cast<int>(static_cast<unsigned>(tile - first) / S::STAGES);
  }
  __device__ __forceinline__ std::uint32_t keys(int tile) const {
    return base + S::kKeys + stage(tile) * 2 * S::kTile;
  }
  __device__ __forceinline__ std::uint32_t values(int tile) const { return keys(tile) + S::kTile; }
  __device__ __forceinline__ std::uint32_t barrier(int tile) const {
    return base + S::kBarriers + 8 * (stage(tile) + 1);
  }
  __device__ __forceinline__ void await(int tile) const {
    mbarrier_wait_unrolled(barrier(tile), round(tile) & 1);
  }
  /// By one thread.
  __device__ __forceinline__ void send_for(int tile, const ForwardMaps& maps) const {
    mbarrier_arrive_expect_tx(barrier(tile), 2 * S::kTile);
#pragma unroll
    for (int kind = 0; kind < 2; ++kind) {  // keys first: they are needed first
#pragma unroll
      for (int panel = 0; panel < S::PANELS; ++panel) {
#pragma unroll
        for (int part = 0; part < S::PARTS; ++part) {
          tma_load_4d(keys(tile) + kind * S::kTile + panel * S::kPanel + part * 64 * S::PC * 2,
                      kind == 0 ? maps.k : maps.v, panel * 64, head, tile * S::BK + part * 64, b,
                      barrier(tile));
        }
      }
    }
  }
  /// Called when a warp has finished with a tile. The last one to do so requests the tile that
  /// takes its place.
  __device__ __forceinline__ void release(int tile, const ForwardMaps& maps, int lane) const {
    if (tile + S::STAGES >= end) return;
    if (lane == 0) {
      const int before = count_one(base + S::kCounts + 4 * stage(tile));
      if (before + 1 == 4 * S::GROUPS * (round(tile) + 1)) send_for(tile + S::STAGES, maps);
    }
    __syncwarp();
  }
};

/// A warpgroup's work on its 64 queries.
template <class S>
struct Worker {
  int row0, lane;  // of this warp
  Queries<S> q;
  Rows rows;
  float o[S::PANELS][S::PC / 8][4];
  std::uint32_t p[S::BK / 16][4];  // weights of the last tile

  /// Turns scores into weights; returns whether the references moved.
  __device__ __forceinline__ bool weigh(const FlashArgs& args, float (&s)[S::PARTS][8][4],
                                        int tile) {
#pragma unroll
    for (int part = 0; part < S::PARTS; ++part) pin(s[part]);
    const int key0 = tile * S::BK, key1 = key0 + S::BK - 1;
    const bool early = key0 < row0 + 15 - args.below;
    if (early) {
      mask<true>(s, args, row0, key0, lane);
    } else if (key1 > row0 + args.above || key1 >= args.context) {
      mask<false>(s, args, row0, key0, lane);
    }
    const bool moved = rows.look(s, args.scale_log2);
    rows.weigh(s, args.scale_log2);
    return moved;
  }

  /// Call it only while no wgmma runs, or the compiler will not let wgmmas overlap.
  __device__ __forceinline__ void shrink_and_pack(const float (&s)[S::PARTS][8][4], bool moved) {
    if (moved) {
#pragma unroll
      for (int panel = 0; panel < S::PANELS; ++panel) {
#pragma unroll
        for (int n = 0; n < S::PC / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) o[panel][n][i] *= rows.shrink[i / 2];
        }
      }
    }
#pragma unroll
    for (int kk = 0; kk < S::BK / 16; ++kk) pack_columns(p[kk], s[kk / 4], kk % 4);
  }

  __device__ __forceinline__ void end_sums() {
    wgmma_wait_group<0>();
#pragma unroll
    for (int panel = 0; panel < S::PANELS; ++panel) pin(o[panel]);
  }

  __device__ __forceinline__ void take_first(const FlashArgs& args, const Ring<S>& ring, int tile) {
    float s[S::PARTS][8][4];
    ring.await(tile);
    begin_scores<S>(s, q, ring.keys(tile));
    wgmma_wait_group<0>();
    weigh(args, s, tile);
    shrink_and_pack(s, false);
    if (!S::OVERLAP) begin_sums<S>(o, p, ring.values(tile));
  }

  __device__ __forceinline__ void take(const FlashArgs& args, const ForwardMaps& maps,
                                       const Ring<S>& ring, int tile) {
    float s[S::PARTS][8][4];  // new registers for every tile
    ring.await(tile);
    begin_scores<S>(s, q, ring.keys(tile));
    bool moved;
    if constexpr (S::OVERLAP) {
      begin_sums<S>(o, p, ring.values(tile - 1));
      wgmma_wait_group<1>();
      moved = weigh(args, s, tile);
      end_sums();
      ring.release(tile - 1, maps, lane);
    } else {
      end_sums();
      ring.release(tile - 1, maps, lane);
      moved = weigh(args, s, tile);
    }
    shrink_and_pack(s, moved);
    if (!S::OVERLAP) begin_sums<S>(o, p, ring.values(tile));
  }

  /// y and stats.
  __device__ __forceinline__ void store(const FlashArgs& args) {
    const BlockPlace here(args, args.heads);
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = quad_sum(rows.sum[half]);
      factor[half] = sum > 0 ? 1 / sum : 0;
      const int i = row0 + half * 8 + (lane >> 2);
      if ((lane & 3) == 0 && i < args.context) {
        args.stats[static_cast<std::int64_t>(here.sequence) * args.context + i] =
            sum > 0 ? fmaf(rows.top[half], args.scale, logf(sum)) : 0;
      }
    }
    bf16* y = args.y + (here.first_row + row0) * args.y_stride + here.head * args.head_size;
#pragma unroll
    for (int panel = 0; panel < S::PANELS; ++panel) {
      store_fragment(o[panel], factor[0], factor[1], y + panel * 64, args.y_stride,
                     args.context - row0, args.head_size - panel * 64, lane);
    }
  }
};

/// By one thread: initialises the barriers, requests the queries and the first keys.
template <class S>
__device__ __forceinline__ void send_for_first(const ForwardMaps& maps, const Ring<S>& ring,
                                               const BlockPlace& place, int q0) {
  const std::uint32_t barriers = ring.base + S::kBarriers;
#pragma unroll
  for (int i = 0; i <= S::STAGES; ++i) mbarrier_init(barriers + 8 * i, 1);
  fence_mbarrier_init();
  mbarrier_arrive_expect_tx(barriers, S::GROUPS * S::kQGroup);
#pragma unroll
  for (int i = 0; i < S::GROUPS * S::PANELS; ++i) {
    tma_load_4d(ring.base + i * S::kQPanel, maps.q, i % S::PANELS * 64, place.head,
                q0 + i / S::PANELS * 64, place.b, barriers);
  }
  for (int tile = ring.first; tile < min(ring.end, ring.first + S::STAGES); ++tile) {
    ring.send_for(tile, maps);
  }
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::BLOCKS)
    hopper_forward_kernel(const __grid_constant__ ForwardMaps maps, const FlashArgs args) {
  extern __shared__ unsigned char memory[];
  const std::uint32_t base = (shared_address(memory) + 1023) & ~1023u;
  const int lane = threadIdx.x & 31, warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
  const int group = warp >> 2;

  const BlockPlace place(args, args.heads);
  const int q0 = (args.tiles - 1 - place.tile) * S::kRows;  // the longest rows first
  const Reach block(args, q0, S::kRows, S::BK);
  const Ring<S> ring{base, place.head / (args.heads / args.key_heads), place.b, block.first,
                     block.end};
  if (threadIdx.x == 0) send_for_first(maps, ring, place, q0);
  if (threadIdx.x < S::STAGES) {
    asm volatile("st.shared.u32 [%0], 0;" ::"r"(base + S::kCounts + 4 * threadIdx.x) : "memory");
  }
  __syncthreads();

  Reach own(args, q0 + group * 64, 64, S::BK);
  own.first = min(own.first, ring.end);
  own.end = min(own.end, ring.end);
  Worker<S> worker;
  worker.row0 = q0 + warp * 16;
  worker.lane = lane;
#pragma unroll
  for (int panel = 0; panel < S::PANELS; ++panel) clear(worker.o[panel]);
  mbarrier_wait_unrolled(base + S::kBarriers, 0);
  worker.q.load(base + group * S::kQGroup, warp, lane);
  for (int tile = ring.first; tile < own.first; ++tile) {
    ring.await(tile);
    ring.release(tile, maps, lane);
  }
  if (own.first < own.end) worker.take_first(args, ring, own.first);
  for (int tile = own.first + 1; tile < own.end; ++tile) worker.take(args, maps, ring, tile);
  if (S::OVERLAP && own.first < own.end) {
    begin_sums<S>(worker.o, worker.p, ring.values(own.end - 1));
  }
  worker.end_sums();
  if (own.first < own.end) ring.release(own.end - 1, maps, lane);
  for (int tile = own.end; tile + S::STAGES < ring.end; ++tile) {
    ring.await(tile);
    ring.release(tile, maps, lane);
  }
  worker.store(args);
}

template <class S>
void launch(FlashArgs args, cudaStream_t stream) {
  args.tiles = (args.context + S::kRows - 1) / S::kRows;
  args.tile_major = keys_stay_cached(args, args.key_heads);
  cudaFuncSetAttribute(hopper_forward_kernel<S>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       S::kBytes);
  const int blocks = args.batch * args.heads * args.tiles;
  hopper_forward_kernel<S>
      <<<blocks, S::kThreads, S::kBytes, stream>>>(make_forward_maps(args, S::PC), args);
  if (cudaGetLastError() != cudaSuccess) {
    throw DeviceError("attention forward: the Hopper kernel could not be launched");
  }
}

}  // namespace

void launch_hopper_forward(const FlashArgs& args, cudaStream_t stream) {
  if (args.head_size <= 16) return launch<Shape<16, 1, 64, 4, 5, true>>(args, stream);
  if (args.head_size <= 32) return launch<Shape<32, 1, 64, 4, 4, true>>(args, stream);
  if (args.head_size <= 64) return launch<Shape<64, 2, 64, 4, 2, true>>(args, stream);
  launch<Shape<128, 3, 64, 3, 1, false>>(args, stream);
}

}  // namespace fathom::engine::cuda::flash
