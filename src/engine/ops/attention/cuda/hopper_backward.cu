// Backward of softmax attention in one kernel of five GEMMs, on wgmma and TMA.
//
// A block owns a key head of a sequence. It walks over blocks of 128 keys in order and, for each,
// over the query heads of the group and their tiles of 128 queries. Warpgroup w holds 64 of the
// keys and takes the queries of a tile in two halves:
//   s^T = K q^T,  dp^T = V dy^T,  p^T = 2^(c s^T - lse2),  ds^T = p^T (dp^T - delta),
//   dv += p^T dy,  dk += scale ds^T q       (sums in registers, stored once),
// and, through ds^T in shared memory, dq += scale ds K for half w of the queries. The dq GEMM of
// a tile overlaps with the scores of the next; TMA adds its result to f32 sums in scratch, where
// each warp has its own places and one addition ends before the next begins. The last block of keys
// that a query sees reads the sums back and rounds them to bf16. Every other block of keys walks
// over the queries backwards: what was added last is needed first.
//
// TMA loads the tiles and stores the gradients, through tiles that are no longer needed.
// The first block of keys that a query sees computes lse2 = stats log2(e) and delta = <dy, y> and
// leaves them in scratch for the others.
//
// Column sums, if requested: those of dq are added up where its rows are rounded. Those of dk and
// dv need not be computed from them, since a row of weights sums to 1 and a row of ds to 0:
//   sum_j dv_j = sum_i dy_i over the rows i that see a key,   sum_j dk_j = 0.
#include <algorithm>

#include "core/error.h"
#include "engine/ops/attention/cuda/hopper_backward_sums.cuh"

namespace fathom::engine::cuda::flash {
namespace {

using namespace backward;

/// Not committed: c[64 x 64] = rows[64 x KP] tile[64 x KP]^T.
template <int KP>
__device__ __forceinline__ void begin_scores(float (&c)[8][4], std::uint32_t rows,
                                             std::uint32_t tile) {
  const SmemDescriptor<KP * 2> left{rows}, right{tile};
  wgmma_fence();
#pragma unroll
  for (int kk = 0; kk < KP / 16; ++kk) {
    wgmma<64, false, false>(c, left + kk * 2, right + kk * 2, kk > 0);
  }
}

/// -inf where key row0 + r, query i0 + c lie outside the band, or the key beyond T.
__device__ __forceinline__ void mask(float (&s)[8][4], const FlashArgs& args, int row0, int i0,
                                     int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int j = row0 + half * 8 + (lane >> 2), at = i0 + (lane & 3) * 2;
    const int first = j - args.above - at;
    const int last = j < args.context ? j + args.below - at : -1 - kTile;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int i = n * 8 + e;
        if (i < first || i > last) s[n][2 * half + e] = -INFINITY;
      }
    }
  }
}

__device__ __forceinline__ void weights(float (&s)[8][4], const float* lse2, float scale_log2) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float2 base = *reinterpret_cast<const float2*>(lse2 + n * 8);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s[n][i] = exp2_fast(fmaf(s[n][i], scale_log2, (i & 1) ? -base.y : -base.x));
    }
  }
}

__device__ __forceinline__ void slopes(float (&dp)[8][4], const float (&p)[8][4],
                                       const float* delta) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float2 mean = *reinterpret_cast<const float2*>(delta + n * 8);
#pragma unroll
    for (int i = 0; i < 4; ++i) dp[n][i] = p[n][i] * (dp[n][i] - ((i & 1) ? mean.y : mean.x));
  }
}

/// Not committed: sums[64 keys x KP] (+)= c[64 keys x 64 queries] tile[64 queries x KP].
template <int KP>
__device__ __forceinline__ void begin_sums(float (&sums)[KP / 8][4], const std::uint32_t (&c)[4][4],
                                           std::uint32_t tile, bool add) {
  const SmemDescriptor<KP * 2> rows{tile};
  wgmma_fence();
#pragma unroll
  for (int kk = 0; kk < 4; ++kk) {
    wgmma<KP, true>(sums, c[kk], rows + kk * KP * 2, add || kk > 0);
  }
}

/// Not committed: dq[64 queries x KP] = ds[64 queries x 128 keys] K.
template <int KP>
__device__ __forceinline__ void begin_dq(float (&dq)[KP / 8][4], std::uint32_t slope_half,
                                         std::uint32_t keys) {
  const SmemDescriptor<128> left{slope_half};
  const SmemDescriptor<KP * 2> right{keys};
  wgmma_fence();
#pragma unroll
  for (int kk = 0; kk < kTile / 16; ++kk) {
    wgmma<KP, true, true>(dq, left + kk * 128, right + kk * KP * 2, kk > 0);
  }
}

/// Where a step finds its tiles in shared memory: addresses, and (`_at`) units of 16 bytes as
/// descriptors need them.
template <int KP>
struct Places {
  using M = Memory<KP>;
  static constexpr std::uint32_t kSecond = kHalf * KP * 2 / 16;  // half of a tile
  std::uint32_t keys_at, k_rows, v_rows, q_at, dy_at, own_slopes;
  std::uint32_t keys, q, dy, ds, ds_rows;

  __device__ __forceinline__ Places(std::uint32_t base, std::uint32_t buffer,
                                    std::uint32_t key_buffer, int group, int warp, int lane) {
    keys = base + key_buffer * 2 * M::kTileBytes;
    keys_at = base / 16 + key_buffer * (2 * M::kTileBytes / 16);
    k_rows = keys_at + group * (kHalf * KP * 2 / 16);
    v_rows = k_rows + M::kTileBytes / 16;
    q_at = base / 16 + M::kQueries / 16 + buffer * (2 * M::kTileBytes / 16);
    dy_at = q_at + M::kTileBytes / 16;
    own_slopes = base / 16 + M::kSlopes / 16 + group * (M::kSlopeHalf / 16);
    q = base + M::kQueries + buffer * 2 * M::kTileBytes;
    dy = q + M::kTileBytes;
    ds = base + M::kSlopes + buffer * 2 * M::kSlopeHalf;
    ds_rows = ds + warp * 16 * 128 + a_offset<64>(lane);
  }
};

/// By one thread: initialises the barriers, and requests the first keys and queries.
template <int KP>
__device__ __forceinline__ void send_for_first(const BackwardMaps& maps, const FlashArgs& args,
                                               const Walk& first, std::uint32_t base) {
  using M = Memory<KP>;
#pragma unroll
  for (int i = 0; i < 4; ++i) mbarrier_init(base + M::kBarriers + 8 * i, 1);
  fence_mbarrier_init();
  load_keys<KP>(maps, first, base, base + M::kBarriers + 16);
  load_queries<KP>(maps, args, first, base + M::kQueries, base + M::kNumbers, base + M::kBarriers);
}

/// By one thread: requests the queries of the next step, and its keys if they are new.
template <int KP>
__device__ __forceinline__ void send_for_next(const BackwardMaps& maps, const FlashArgs& args,
                                              const Walk& next, std::uint32_t base, bool new_keys,
                                              std::uint32_t key_buffer, std::uint32_t buffer) {
  using M = Memory<KP>;
  if (new_keys) {
    load_keys<KP>(maps, next, base + (key_buffer ^ 1) * 2 * M::kTileBytes,
                  base + M::kBarriers + 16 + 8 * (key_buffer ^ 1));
  }
  load_queries<KP>(maps, args, next, base + M::kQueries + (buffer ^ 1) * 2 * M::kTileBytes,
                   base + M::kNumbers + (buffer ^ 1) * 8 * kTile,
                   base + M::kBarriers + 8 * (buffer ^ 1));
}

/// Whether the queries from i0 on all see a warp's 16 keys from row0 on, and whether any does.
struct Sight {
  bool whole, any;
  __device__ __forceinline__ Sight(const FlashArgs& args, int row0, int i0) {
    whole = i0 + kHalf - 1 <= row0 + args.below && i0 >= row0 + 15 - args.above &&
            row0 + 15 < args.context;
    any = row0 <= i0 + kHalf - 1 + args.above && row0 + 15 >= i0 - args.below;
  }
};

/// Finishes a block of keys: dq of its last queries, and dk and dv, stored through tiles that are
/// no longer read.
template <int KP>
__device__ __forceinline__ void finish_keys(const BackwardMaps& maps, const FlashArgs& args,
                                            const Walk& here, const Places<KP>& at,
                                            const float (&dk)[KP / 8][4],
                                            const float (&dv)[KP / 8][4], Columns<KP>& columns,
                                            std::uint32_t buffer, std::uint32_t own_sums, int row0,
                                            int warp, int lane) {
  using M = Memory<KP>;
  fence_proxy_async_shared();
  __syncthreads();  // ds^T is complete
  float dq_last[KP / 8][4];
  begin_dq<KP>(dq_last, at.own_slopes + buffer * (2 * M::kSlopeHalf / 16), at.keys_at);
  wgmma_commit_group();
  fetch_sums<KP, 0>(args, here, own_sums, warp, lane);
  send_sums<KP>(dk, args.scale, at.q + warp * 16 * KP * 2, maps.dk, here.key_head, row0, here.b,
                lane);
  send_sums<KP>(dv, 1, at.keys + M::kTileBytes + warp * 16 * KP * 2, maps.dv, here.key_head, row0,
                here.b, lane);
  wgmma_wait_group<0>();
  pin(dq_last);
  store_dq<KP, 2>(dq_last, maps, args, here, own_sums, columns, warp, lane);
  tma_store_wait_read<1>();  // of dk and dv
}

template <int KP>
__global__ void __launch_bounds__(kThreads, 1)
    hopper_backward_kernel(const __grid_constant__ BackwardMaps maps, const FlashArgs args) {
  using M = Memory<KP>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t base = shared_address(memory);
  const int lane = threadIdx.x & 31, warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
  const int group = warp >> 2;
  const std::uint32_t own_sums = base + M::kSums + warp * M::kWarpSums;
  float dk[KP / 8][4], dv[KP / 8][4];
  Columns<KP> columns;
  columns.clear();

  Walk next;
  next.enter(args, blockIdx.x);
  next.tile = next.first_tile(args);
  int last_head = 0, last_tile = 0;  // of the previous step
  if (threadIdx.x == 0) send_for_first<KP>(maps, args, next, base);
  load_fresh<KP>(args, next, base + M::kNumbers, base + M::kSlopes + warp * M::kFresh);
  cp_async_commit();
  bool new_keys = true;
  std::uint32_t key_buffer = 0, key_parity = 0;
  for (int step = 0; next.inside(args); ++step) {
    const Walk here = next;
    const bool pending = !new_keys;  // the dq GEMM of the previous tile
    const std::uint32_t buffer = step & 1;
    const Places<KP> at(base, buffer, key_buffer, group, warp, lane);
    float* all_numbers = reinterpret_cast<float*>(memory + M::kNumbers) + buffer * 2 * kTile;
    const float* numbers = all_numbers + (lane & 3) * 2;
    const int row0 = here.keys * kTile + warp * 16;
    cp_async_wait_all();
    fence_proxy_async_shared();
    __syncthreads();  // ds^T of the last tile is complete, its buffers are free
    mbarrier_wait_unrolled(base + M::kBarriers + 8 * buffer, (step >> 1) & 1);
    if (new_keys) {
      mbarrier_wait_unrolled(base + M::kBarriers + 16 + 8 * key_buffer, key_parity);
      key_parity ^= key_buffer;
    }
    // One for each half: new registers at every step.
    float s[2][8][4], dp[2][8][4], dq[KP / 8][4];
    begin_scores<KP>(s[0], at.k_rows, at.q_at);
    wgmma_commit_group();
    begin_scores<KP>(dp[0], at.v_rows, at.dy_at);
    wgmma_commit_group();
    if (pending) {
      begin_dq<KP>(dq, at.own_slopes + (buffer ^ 1) * (2 * M::kSlopeHalf / 16), at.keys_at);
    }
    wgmma_commit_group();
    Walk last = here;
    last.head = last_head;
    last.tile = last_tile;
    if (pending) fetch_sums<KP, 0>(args, last, own_sums, warp, lane);
    if (here.first_visit(args)) {
      __syncwarp();
      measure<KP>(args, here, at.dy + warp * 16 * KP * 2, at.ds + warp * M::kFresh, all_numbers,
                  columns, warp, lane);
      fence_proxy_async();  // TMA will read what was left in scratch
      __syncthreads();
    }
    new_keys = next.advance(args);
    if (threadIdx.x == 0 && next.inside(args)) {
      send_for_next<KP>(maps, args, next, base, new_keys, key_buffer, buffer);
    }
    std::uint32_t a[4][4], d[4][4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (half == 0) wgmma_wait_group<2>();
      if (half == 1) wgmma_wait_group<1>();
      const int i0 = here.tile * kTile + half * kHalf;
      const Sight sight(args, row0, i0);
      pin(s[half]);
      if (sight.any) {
        if (!sight.whole) mask(s[half], args, row0, i0, lane);
        weights(s[half], numbers + half * kHalf, args.scale_log2);
#pragma unroll
        for (int kk = 0; kk < 4; ++kk) pack_columns(a[kk], s[half], kk);
      } else {
        clear(a);
      }
      begin_sums<KP>(dv, a, at.dy_at + half * at.kSecond, pending || half > 0);
      wgmma_commit_group();
      wgmma_wait_group<1>();
      if (half == 0 && pending) {  // the dq GEMM is done as well: its registers are needed
        pin(dq);
        store_dq<KP, 0>(dq, maps, args, last, own_sums, columns, warp, lane);
      }
      pin(dp[half]);
      if (sight.any) {
        slopes(dp[half], s[half], numbers + kTile + half * kHalf);
#pragma unroll
        for (int kk = 0; kk < 4; ++kk) pack_columns(d[kk], dp[half], kk);
      } else {
        clear(d);
      }
      begin_sums<KP>(dk, d, at.q_at + half * at.kSecond, pending || half > 0);
      wgmma_commit_group();
      if (half == 0) {
        begin_scores<KP>(s[1], at.k_rows, at.q_at + at.kSecond);
        wgmma_commit_group();
        begin_scores<KP>(dp[1], at.v_rows, at.dy_at + at.kSecond);
        wgmma_commit_group();
      }
#pragma unroll
      for (int kk = 0; kk < 4; ++kk) {
        stmatrix_x4((at.ds_rows ^ (kk << 5)) + half * M::kSlopeHalf, d[kk]);
      }
      if (half == 1) continue;
      if (next.inside(args) && next.first_visit(args)) {
        // This warpgroup's dq GEMM has read from where y goes.
        asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
        load_fresh<KP>(args, next, base + M::kNumbers + (buffer ^ 1) * 8 * kTile,
                       base + M::kSlopes + (buffer ^ 1) * 2 * M::kSlopeHalf + warp * M::kFresh);
      }
      cp_async_commit();
    }
    wgmma_wait_group<0>();
    pin(dk);
    pin(dv);
    last_head = here.head;
    last_tile = here.tile;
    if (!new_keys) continue;

    finish_keys<KP>(maps, args, here, at, dk, dv, columns, buffer, own_sums, row0, warp, lane);
    if (args.columns != nullptr && next.item != here.item) {
      store_columns<KP>(args, here, columns, reinterpret_cast<float*>(memory + (at.dy - base)),
                        warp, lane);
    }
    key_buffer ^= 1;
  }
  wait_additions<0>();
}

/// totals[(H + 2 H) K] (+)= the sums of all sequences: columns [B, (H + H) K] of dq and dv.
__global__ void total_columns_kernel(const FlashArgs args, float* totals, bool add) {
  __shared__ float shared[32][33];
  const int width = args.heads * args.head_size, c = blockIdx.x * 32 + threadIdx.x;
  const int from = c < width ? c : c - width;  // none for those of dk
  float sum = 0;
  if (c < width || (c >= 2 * width && c < 3 * width)) {
#pragma unroll 8
    for (int b = threadIdx.y; b < args.batch; b += 32) {
      sum += args.columns[static_cast<std::int64_t>(b) * 2 * width + from];
    }
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= 3 * width) return;
  for (int y = 1; y < 32; ++y) sum += shared[y][threadIdx.x];
  totals[c] = add ? totals[c] + sum : sum;
}

void check_launch() {
  if (cudaGetLastError() != cudaSuccess) {
    throw DeviceError("attention backward: the kernel could not be launched");
  }
}

template <int KP>
void launch(FlashArgs args, int blocks, cudaStream_t stream) {
  args.tiles = (args.context + kTile - 1) / kTile;
  args.group = args.heads / args.key_heads;
  cudaFuncSetAttribute(hopper_backward_kernel<KP>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       Memory<KP>::kBytes);
  hopper_backward_kernel<KP>
      <<<blocks, kThreads, Memory<KP>::kBytes, stream>>>(make_backward_maps(args, KP), args);
  check_launch();
}

}  // namespace

void launch_hopper_backward(const FlashArgs& args, int blocks, cudaStream_t stream) {
  args.head_size <= 32 ? launch<32>(args, blocks, stream) : launch<64>(args, blocks, stream);
}

void launch_total_columns(const FlashArgs& args, float* totals, bool add, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(3 * args.heads * args.head_size + 31) / 32;
  total_columns_kernel<<<blocks, dim3(32, 32), 0, stream>>>(args, totals, add);
  check_launch();
}

}  // namespace fathom::engine::cuda::flash
