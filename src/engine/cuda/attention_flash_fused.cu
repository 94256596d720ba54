// Adjoint of softmax attention in one kernel of five products, on warpgroup matrix products.
//
// A block owns a key head of a sequence. It walks over blocks of 128 keys in order and, for each,
// over the query heads of the group and their tiles of 128 queries. Warpgroup w holds 64 of the
// keys and takes the queries of a tile in two halves:
//   s^T = K q^T,  dp^T = V dy^T,  p^T = 2^(c s^T - lse2),  ds^T = p^T (dp^T - delta),
//   dv += p^T dy,  dk += scale ds^T q       (sums in registers, stored once),
// and, through ds^T in shared memory, dq += scale ds K for half w of the queries. dq is summed in
// f32 in scratch, where a thread reads and writes its own places only; the last block of keys that
// a query sees rounds it to bf16. The dq product of a tile runs beside the scores of the next.
// lse2 = stats log2(e) and delta = <dy, y> come from a small kernel before.
#include <algorithm>

#include "core/error.h"
#include "engine/cuda/attention_flash.cuh"
#include "engine/cuda/attention_kernels.h"
#include "engine/cuda/attention_wgmma.cuh"

namespace fathom::engine::cuda::flash {
namespace {

constexpr float kLog2E = 1.4426950408889634f;
constexpr int kThreads = 256, kTile = 128, kHalf = 64;

template <int KP>
struct Memory {                                                // bytes in shared memory
  static constexpr int kTileBytes = kTile * KP * 2;            // of k, v, q or dy
  static constexpr int kSlopeHalf = kTile * kHalf * 2;         // ds^T of 64 queries
  static constexpr int kQueries = 4 * kTileBytes;              // after two buffers of k and v
  static constexpr int kSlopes = kQueries + 4 * kTileBytes;    // after two of q and dy
  static constexpr int kNumbers = kSlopes + 4 * kSlopeHalf;    // after two of ds^T
  static constexpr int kBytes = kNumbers + 2 * 2 * kTile * 4;  // two of lse2 and delta
};

/// Where the block is: a key head of a sequence, a block of keys, a query head, a query tile.
struct Walk {
  int item, keys, head, tile;

  /// The query tiles that see these keys.
  __device__ __forceinline__ int first_tile(const FlashArgs& args) const {
    return max(0, keys * kTile - args.above) / kTile;
  }
  __device__ __forceinline__ int last_tile(const FlashArgs& args) const {
    return min(args.context - 1, keys * kTile + kTile - 1 + args.below) / kTile;
  }
  /// Returns whether a new block of keys begins.
  __device__ __forceinline__ bool advance(const FlashArgs& args) {
    if (tile++ < last_tile(args)) return false;
    const bool more_heads = ++head < args.heads / args.key_heads;
    if (!more_heads) {
      head = 0;
      if (++keys == args.tiles) {
        keys = 0;
        item += gridDim.x;
      }
    }
    tile = first_tile(args);
    return !more_heads;
  }
  /// The step before this one with the same keys.
  __device__ __forceinline__ Walk before(const FlashArgs& args) const {
    const bool same_head = tile > first_tile(args);
    return {item, keys, same_head ? head : head - 1, same_head ? tile - 1 : last_tile(args)};
  }
  /// The first and last block of keys that queries of this tile see.
  __device__ __forceinline__ bool first_visit(const FlashArgs& args) const {
    return keys == max(0, tile * kTile - args.below) / kTile;
  }
  __device__ __forceinline__ bool last_visit(const FlashArgs& args) const {
    return keys == min(args.context - 1, tile * kTile + kTile - 1 + args.above) / kTile;
  }
  __device__ __forceinline__ std::int64_t first_row(const FlashArgs& args) const {
    return static_cast<std::int64_t>(item / args.key_heads) * args.context;
  }
  __device__ __forceinline__ int key_head(const FlashArgs& args) const {
    return item % args.key_heads;
  }
  __device__ __forceinline__ int query_head(const FlashArgs& args) const {
    return key_head(args) * (args.heads / args.key_heads) + head;
  }
};

template <int KP>
__device__ __forceinline__ void load_keys(const FlashArgs& args, const Walk& at,
                                          std::uint32_t tiles) {
  const std::int64_t row = at.first_row(args) + at.keys * kTile;
  const int column = at.key_head(args) * args.head_size, left = args.context - at.keys * kTile;
  load_tile<KP, kTile, kThreads>(tiles, args.k + row * args.qk_stride + column, args.qk_stride,
                                 left, args.head_size);
  load_tile<KP, kTile, kThreads>(tiles + Memory<KP>::kTileBytes,
                                 args.v + row * args.v_stride + column, args.v_stride, left,
                                 args.head_size);
}

template <int KP>
__device__ __forceinline__ void load_queries(const FlashArgs& args, const Walk& at,
                                             std::uint32_t tiles, std::uint32_t numbers) {
  const int i0 = at.tile * kTile, left = args.context - i0, h = at.query_head(args);
  const std::int64_t row = at.first_row(args) + i0;
  const int column = h * args.head_size;
  load_tile<KP, kTile, kThreads>(tiles, args.q + row * args.qk_stride + column, args.qk_stride,
                                 left, args.head_size);
  load_tile<KP, kTile, kThreads>(tiles + Memory<KP>::kTileBytes,
                                 args.dy + row * args.y_stride + column, args.y_stride, left,
                                 args.head_size);
  // Rows beyond T get zeros everywhere: p = 1, but dy = ds = 0.
  static_assert(kThreads == 2 * kTile);
  const int i = threadIdx.x % kTile;
  const float* from = static_cast<int>(threadIdx.x) < kTile ? args.lse2 : args.delta;
  from +=
      (static_cast<std::int64_t>(at.item / args.key_heads) * args.heads + h) * args.context + i0;
  copy_async_4(numbers + threadIdx.x * 4, i < left ? from + i : from, i < left);
}

/// c[64 x 64] = rows[64 x KP] tile[64 x KP]^T, one group; `rows` also lie in `held` if HELD.
template <int KP, bool HELD>
__device__ __forceinline__ void begin_scores(float (&c)[8][4], const LeftOperand<KP, 1>& held,
                                             std::uint32_t rows, std::uint32_t tile) {
  const std::uint64_t left = describe<KP * 2>(rows), right = describe<KP * 2>(tile);
  begin_products();
#pragma unroll
  for (int kk = 0; kk < KP / 16; ++kk) {
    if constexpr (HELD) {
      multiply_registers<64, false>(c, held.r[0][kk], right + kk * 2, kk > 0);
    } else {
      multiply_tiles<64, false>(c, left + kk * 2, right + kk * 2, kk > 0);
    }
  }
  commit_products();
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

/// One group: sums[64 keys x KP] += c[64 keys x 64 queries] tile[64 queries x KP].
template <int KP>
__device__ __forceinline__ void begin_sums(float (&sums)[KP / 8][4], const std::uint32_t (&c)[4][4],
                                           std::uint32_t tile) {
  const std::uint64_t rows = describe<KP * 2>(tile);
  begin_products();
#pragma unroll
  for (int kk = 0; kk < 4; ++kk) {
    multiply_registers<KP, true>(sums, c[kk], rows + kk * KP * 2, true);
  }
  commit_products();
}

/// The products of dq[64 queries x KP] += ds[64 queries x 128 keys] K, not committed.
template <int KP>
__device__ __forceinline__ void begin_dq(float (&dq)[KP / 8][4], std::uint32_t slope_half,
                                         std::uint32_t keys) {
  const std::uint64_t left = describe<128>(slope_half), right = describe<KP * 2>(keys);
  begin_products();
#pragma unroll
  for (int kk = 0; kk < kTile / 16; ++kk) {
    multiply_tiles<KP, true>(dq, left + kk * 128, right + kk * KP * 2, true);
  }
}

/// dq so far of a warpgroup's half of a tile: a thread's own places in scratch.
template <int KP>
__device__ __forceinline__ float4* sums_place(const FlashArgs& args, const Walk& at, int group) {
  const int part =
      ((blockIdx.x * (args.heads / args.key_heads) + at.head) * args.tiles + at.tile) * 2 + group;
  return reinterpret_cast<float4*>(args.dq_sums) + static_cast<std::int64_t>(part) * (16 * KP) +
         threadIdx.x % 128;
}

template <int KP>
__device__ __forceinline__ void load_dq(float (&dq)[KP / 8][4], const FlashArgs& args,
                                        const Walk& at, int group) {
  const float4* from = sums_place<KP>(args, at, group);
  const bool fresh = at.first_visit(args);
#pragma unroll
  for (int n = 0; n < KP / 8; ++n) {
    const float4 x = fresh ? float4{0, 0, 0, 0} : __ldcg(from + n * 128);
    dq[n][0] = x.x;
    dq[n][1] = x.y;
    dq[n][2] = x.z;
    dq[n][3] = x.w;
  }
}

template <int KP>
__device__ __forceinline__ void store_dq(const float (&dq)[KP / 8][4], const FlashArgs& args,
                                         const Walk& at, int group, int warp, int lane) {
  if (at.last_visit(args)) {
    const int row = at.tile * kTile + group * kHalf + (warp & 3) * 16;
    bf16* to =
        args.dq + (at.first_row(args) + row) * args.d_stride + at.query_head(args) * args.head_size;
    return store_fragment(dq, args.scale, args.scale, to, args.d_stride, args.context - row,
                          args.head_size, lane);
  }
  float4* to = sums_place<KP>(args, at, group);
#pragma unroll
  for (int n = 0; n < KP / 8; ++n) {
    __stcg(to + n * 128, float4{dq[n][0], dq[n][1], dq[n][2], dq[n][3]});
  }
}

/// HELD of the key operands (k, then v) stay in registers: less to read from shared memory.
template <int KP, int HELD>
__global__ void __launch_bounds__(kThreads, 1) fused_kernel(const FlashArgs args) {
#if FATHOM_WGMMA
  using M = Memory<KP>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t base = shared_address(memory);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = threadIdx.x >> 7;
  const int items = args.batch * args.key_heads;
  LeftOperand<KP, 1> k, v;
  float dk[KP / 8][4], dv[KP / 8][4], dq[KP / 8][4];

  Walk next{static_cast<int>(blockIdx.x), 0, 0, 0};
  next.tile = next.first_tile(args);
  clear(dq);
  load_keys<KP>(args, next, base);
  load_queries<KP>(args, next, base + M::kQueries, base + M::kNumbers);
  commit_copies();
  bool new_keys = true;
  std::uint32_t key_buffer = 0;
  for (int step = 0; next.item < items; ++step) {
    const Walk here = next;
    const bool pending = !new_keys;  // the dq product of the tile before
    const std::uint32_t buffer = step & 1;
    const std::uint32_t keys = base + key_buffer * 2 * M::kTileBytes;
    const std::uint32_t k_rows = keys + group * kHalf * KP * 2, v_rows = k_rows + M::kTileBytes;
    const std::uint32_t q = base + M::kQueries + buffer * 2 * M::kTileBytes;
    const std::uint32_t dy = q + M::kTileBytes;
    const std::uint32_t ds = base + M::kSlopes + buffer * 2 * M::kSlopeHalf;
    const std::uint32_t ds_rows = ds + warp * 16 * 128 + left_offset<64>(lane);
    const float* numbers =
        reinterpret_cast<const float*>(memory + M::kNumbers) + buffer * 2 * kTile + (lane & 3) * 2;
    const int row0 = here.keys * kTile + warp * 16;
    wait_copies();
    publish_shared();
    __syncthreads();  // this tile has arrived, ds^T of the last is whole, its buffers are free
    if (new_keys) {
      if (HELD > 0) k.load(keys + warp * 16 * KP * 2, lane);
      if (HELD > 1) v.load(keys + M::kTileBytes + warp * 16 * KP * 2, lane);
      clear(dk);
      clear(dv);
    }
    float s[2][8][4], dp[2][8][4];  // of the two halves: new registers at every step
    begin_scores<KP, (HELD > 0)>(s[0], k, k_rows, q);
    begin_scores<KP, (HELD > 1)>(dp[0], v, v_rows, dy);
    if (pending) {
      const std::uint32_t other = base + M::kSlopes + (buffer ^ 1) * 2 * M::kSlopeHalf;
      begin_dq<KP>(dq, other + group * M::kSlopeHalf, keys);
    }
    commit_products();
    std::uint32_t a[4][4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (half == 0) wait_products<2>();
      if (half == 1) wait_products<1>();
      pin(s[half]);
      const int i0 = here.tile * kTile + half * kHalf;
      const bool whole = i0 + kHalf - 1 <= row0 + args.below && i0 >= row0 + 15 - args.above &&
                         row0 + 15 < args.context;
      if (!whole) mask(s[half], args, row0, i0, lane);
      weights(s[half], numbers + half * kHalf, args.scale_log2);
#pragma unroll
      for (int kk = 0; kk < 4; ++kk) pack_columns(a[kk], s[half], kk);
      begin_sums<KP>(dv, a, dy + half * kHalf * KP * 2);
      wait_products<1>();
      pin(dp[half]);
      if (half == 0 && pending) {  // the dq product is done as well: its registers are needed
        pin(dq);
        store_dq<KP>(dq, args, here.before(args), group, warp, lane);
      }
      slopes(dp[half], s[half], numbers + kTile + half * kHalf);
      std::uint32_t d[4][4];
#pragma unroll
      for (int kk = 0; kk < 4; ++kk) pack_columns(d[kk], dp[half], kk);
      begin_sums<KP>(dk, d, q + half * kHalf * KP * 2);
      if (half == 0) {
        begin_scores<KP, (HELD > 0)>(s[1], k, k_rows, q + kHalf * KP * 2);
        begin_scores<KP, (HELD > 1)>(dp[1], v, v_rows, dy + kHalf * KP * 2);
      }
#pragma unroll
      for (int kk = 0; kk < 4; ++kk) {
        store_matrices((ds_rows ^ (kk << 5)) + half * M::kSlopeHalf, d[kk]);
      }
      if (half == 1) continue;
      new_keys = next.advance(args);
      if (next.item < items) {
        if (new_keys) load_keys<KP>(args, next, base + (key_buffer ^ 1) * 2 * M::kTileBytes);
        load_queries<KP>(args, next, base + M::kQueries + (buffer ^ 1) * 2 * M::kTileBytes,
                         base + M::kNumbers + (buffer ^ 1) * 8 * kTile);
      }
      commit_copies();
    }
    wait_products<0>();
    pin(dk);
    pin(dv);
    load_dq<KP>(dq, args, here, group);
    if (!new_keys) continue;

    publish_shared();
    __syncthreads();  // ds^T is whole
    begin_dq<KP>(dq, ds + group * M::kSlopeHalf, keys);
    commit_products();
    const std::int64_t at =
        (here.first_row(args) + row0) * args.d_stride + here.key_head(args) * args.head_size;
    store_fragment(dk, args.scale, args.scale, args.dk + at, args.d_stride, args.context - row0,
                   args.head_size, lane);
    store_fragment(dv, 1, 1, args.dv + at, args.d_stride, args.context - row0, args.head_size,
                   lane);
    wait_products<0>();
    pin(dq);
    store_dq<KP>(dq, args, here, group, warp, lane);
    key_buffer ^= 1;
  }
#else
  __trap();  // compiled for a GPU without these products: never launched there
#endif
}

/// lse2 = stats log2(e), delta = <dy, y> of every query; KP/8 lanes a query.
template <int KP>
__global__ void delta_kernel(const FlashArgs args) {
  constexpr int kLanes = KP / 8;
  const std::int64_t items = static_cast<std::int64_t>(args.batch) * args.heads * args.context;
  const std::int64_t at =
      static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / kLanes) + threadIdx.x / kLanes;
  const int column = static_cast<int>(threadIdx.x) % kLanes * 8;
  float sum = 0;
  if (at < items && column < args.head_size) {
    const std::int64_t sequence = at / args.context, b = sequence / args.heads;
    const std::int64_t row = b * args.context + at % args.context;
    const std::int64_t place =
        row * args.y_stride + sequence % args.heads * args.head_size + column;
    const uint4 x = *reinterpret_cast<const uint4*>(args.dy + place);
    const uint4 y = *reinterpret_cast<const uint4*>(args.y_in + place);
    const std::uint32_t left[4] = {x.x, x.y, x.z, x.w}, right[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 a = unpack(left[i]), b = unpack(right[i]);
      sum = fmaf(a.x, b.x, fmaf(a.y, b.y, sum));
    }
  }
#pragma unroll
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  }
  if (at >= items || column > 0) return;
  args.delta[at] = sum;
  args.lse2[at] = args.stats[at] * kLog2E;
}

void check_launch() {
  if (cudaGetLastError() != cudaSuccess) {
    throw DeviceError("attention backward: the kernel could not be launched");
  }
}

template <int KP, int HELD>
void launch(FlashArgs args, cudaStream_t stream) {
  const std::int64_t queries = static_cast<std::int64_t>(args.batch) * args.heads * args.context;
  const int each = 256 / (KP / 8);
  delta_kernel<KP><<<static_cast<unsigned>((queries + each - 1) / each), 256, 0, stream>>>(args);
  check_launch();
  args.tiles = (args.context + kTile - 1) / kTile;
  cudaFuncSetAttribute(fused_kernel<KP, HELD>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       Memory<KP>::kBytes);
  const int blocks = std::min(args.batch * args.key_heads, kFusedBlocks);
  fused_kernel<KP, HELD><<<blocks, kThreads, Memory<KP>::kBytes, stream>>>(args);
  check_launch();
}

}  // namespace

void launch_backward_fused(const FlashArgs& args, cudaStream_t stream) {
  const int chosen = attention_tuning().backward;
  if (args.head_size <= 32) {
    if (chosen == 1) return launch<32, 0>(args, stream);
    if (chosen == 2) return launch<32, 1>(args, stream);
    return launch<32, 2>(args, stream);
  }
  if (chosen == 2) return launch<64, 1>(args, stream);
  if (chosen == 3) return launch<64, 2>(args, stream);
  launch<64, 0>(args, stream);
}

}  // namespace fathom::engine::cuda::flash
