// Adjoint of softmax attention in one kernel of five products, on warpgroup matrix products.
//
// A block owns a key head of a sequence. It walks over blocks of 128 keys in order and, for each,
// over the query heads of the group and their tiles of 128 queries. Warpgroup w holds 64 of the
// keys and takes the queries of a tile in two halves:
//   s^T = K q^T,  dp^T = V dy^T,  p^T = 2^(c s^T - lse2),  ds^T = p^T (dp^T - delta),
//   dv += p^T dy,  dk += scale ds^T q       (sums in registers, stored once),
// and, through ds^T in shared memory, dq += scale ds K for half w of the queries. The dq product of
// a tile runs beside the scores of the next; the copy engine adds its result to f32 sums in
// scratch, where a warp has its own places and one addition ends before the next begins. The last
// block of keys that a query sees takes the sums back and rounds them to bf16. Every other block of
// keys walks over the queries backwards: what was added last is needed first.
//
// The copy engine brings the tiles and takes the gradients away, through tiles that are done with.
// The first block of keys that a query sees makes lse2 = stats log2(e) and delta = <dy, y> and
// leaves them in scratch for the others.
//
// Column sums, if asked for: those of dq are added where its rows are rounded. Of the others none
// has to be computed, since a row of weights sums to 1 and a row of ds to 0:
//   sum_j dv_j = sum_i dy_i over the rows i that see a key,   sum_j dk_j = 0.
#include <algorithm>

#include "core/error.h"
#include "engine/cuda/attention_copy.cuh"
#include "engine/cuda/attention_flash.cuh"
#include "engine/cuda/attention_kernels.h"
#include "engine/cuda/attention_wgmma.cuh"

namespace fathom::engine::cuda::flash {
namespace {

constexpr float kLog2E = 1.4426950408889634f;
constexpr int kThreads = 256, kTile = 128, kHalf = 64;

template <int KP>
struct Memory {                                              // bytes in shared memory
  static constexpr int kTileBytes = kTile * KP * 2;          // of k, v, q or dy
  static constexpr int kSlopeHalf = kTile * kHalf * 2;       // ds^T of 64 queries
  static constexpr int kFresh = kSlopeHalf / 4;              // there, for y of 16 queries
  static constexpr int kQueries = 4 * kTileBytes;            // after two buffers of k and v
  static constexpr int kSlopes = kQueries + 4 * kTileBytes;  // after two of q and dy
  static constexpr int kSums = kSlopes + 4 * kSlopeHalf;     // after two of ds^T
  static constexpr int kWarpSums = 16 * KP * 4;              // dq of a warp on its way
  static constexpr int kNumbers = kSums + 8 * kWarpSums;
  static constexpr int kBarriers = kNumbers + 2 * 2 * kTile * 4;  // after two of lse2 and delta
  static constexpr int kBytes = kBarriers + 4 * 8;  // of two buffers of queries, then of keys
};

/// Where the block is: a key head of a sequence, a block of keys, a query head, a query tile.
struct Walk {
  int item, b, key_head, keys, head, tile;

  __device__ __forceinline__ void enter(const FlashArgs& args, int new_item) {
    item = new_item;
    b = item / args.key_heads;
    key_head = item - b * args.key_heads;
    keys = head = 0;
  }
  __device__ __forceinline__ bool inside(const FlashArgs& args) const {
    return item < args.batch * args.key_heads;
  }
  /// The query tiles that see these keys.
  __device__ __forceinline__ int first_tile(const FlashArgs& args) const {
    return max(0, keys * kTile - args.above) / kTile;
  }
  __device__ __forceinline__ int last_tile(const FlashArgs& args) const {
    return min(args.context - 1, keys * kTile + kTile - 1 + args.below) / kTile;
  }
  __device__ __forceinline__ bool backwards() const { return (keys & 1) != 0; }
  /// Returns whether a new block of keys begins.
  __device__ __forceinline__ bool advance(const FlashArgs& args) {
    const int last_head = args.group - 1;
    const int step = backwards() ? -1 : 1;
    if (tile != (step > 0 ? last_tile(args) : first_tile(args))) {
      tile += step;
      return false;
    }
    const bool new_keys = head == (step > 0 ? last_head : 0);
    if (new_keys && ++keys == args.tiles) enter(args, item + gridDim.x);
    const bool back = backwards();
    head = !new_keys ? head + step : back ? last_head : 0;
    tile = back ? last_tile(args) : first_tile(args);
    return new_keys;
  }
  /// The first and last block of keys that queries of this tile see.
  __device__ __forceinline__ bool first_visit(const FlashArgs& args) const {
    return keys == max(0, tile * kTile - args.below) / kTile;
  }
  __device__ __forceinline__ bool last_visit(const FlashArgs& args) const {
    return keys == min(args.context - 1, tile * kTile + kTile - 1 + args.above) / kTile;
  }
  __device__ __forceinline__ std::int64_t first_row(const FlashArgs& args) const {
    return static_cast<std::int64_t>(b) * args.context;
  }
  __device__ __forceinline__ int query_head(const FlashArgs& args) const {
    return key_head * args.group + head;
  }
  /// lse2, then delta of this tile in scratch.
  __device__ __forceinline__ float* numbers(const FlashArgs& args) const {
    const int sequence = b * args.heads + query_head(args);
    return args.lse2 + (static_cast<std::int64_t>(sequence) * args.tiles + tile) * (2 * kTile);
  }
};

/// One thread: sends for k and v of a block of keys.
template <int KP>
__device__ __forceinline__ void load_keys(const AdjointMaps& maps, const Walk& at,
                                          std::uint32_t tiles, std::uint32_t barrier) {
  arrive_expecting(barrier, 2 * Memory<KP>::kTileBytes);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    copy_rows(tiles + i * kHalf * KP * 2, i < 2 ? maps.k : maps.v, 0, at.key_head,
              at.keys * kTile + i % 2 * kHalf, at.b, barrier);
  }
}

/// One thread: sends for q and dy of a tile, and for its numbers if they are known. Rows beyond T
/// get zeros everywhere: p = 1, but dy = ds = 0.
template <int KP>
__device__ __forceinline__ void load_queries(const AdjointMaps& maps, const FlashArgs& args,
                                             const Walk& at, std::uint32_t tiles,
                                             std::uint32_t numbers, std::uint32_t barrier) {
  const bool known = !at.first_visit(args);
  const int h = at.query_head(args);
  arrive_expecting(barrier, 2 * Memory<KP>::kTileBytes + (known ? 2 * kTile * 4 : 0));
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    copy_rows(tiles + i * kHalf * KP * 2, i < 2 ? maps.q : maps.dy, 0, h,
              at.tile * kTile + i % 2 * kHalf, at.b, barrier);
  }
  if (known) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(numbers),
        "l"(at.numbers(args)), "n"(2 * kTile * 4), "r"(barrier)
        : "memory");
  }
}

/// At a tile's first visit: its stats, to `numbers`, and y of the warp's own 16 queries.
template <int KP>
__device__ __forceinline__ void load_fresh(const FlashArgs& args, const Walk& at,
                                           std::uint32_t numbers, std::uint32_t y_rows) {
  const int i0 = at.tile * kTile, left = args.context - i0, h = at.query_head(args);
  const int thread = thread_now();
  const float* stats =
      args.stats + (static_cast<std::int64_t>(at.b) * args.heads + h) * args.context + i0;
  const bool inside = thread < left;
  if (thread < kTile) copy_async_4(numbers + thread * 4, inside ? stats + thread : stats, inside);
  constexpr int kChunks = KP / 8, kStep = 32 / kChunks;
  const int row = thread % 32 / kChunks, chunk = thread % kChunks, row0 = thread / 32 * 16;
  const bf16* y = args.y_in + (at.first_row(args) + i0 + row0) * args.y_stride +
                  static_cast<std::int64_t>(h) * args.head_size;
#pragma unroll
  for (int r = row; r < row + 16; r += kStep) {
    const bool valid = row0 + r < left && chunk * 8 < args.head_size;
    copy_async_16(y_rows + chunk_offset<KP>(r, chunk),
                  valid ? y + r * args.y_stride + chunk * 8 : y, valid);
  }
}

// Places of tiles in the products below are in units of 16 bytes.

/// Not committed: c[64 x 64] = rows[64 x KP] tile[64 x KP]^T.
template <int KP>
__device__ __forceinline__ void begin_scores(float (&c)[8][4], std::uint32_t rows,
                                             std::uint32_t tile) {
  const Described<KP * 2> left{rows}, right{tile};
  begin_products();
#pragma unroll
  for (int kk = 0; kk < KP / 16; ++kk) {
    multiply_tiles<64, false>(c, left + kk * 2, right + kk * 2, kk > 0);
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
  const Described<KP * 2> rows{tile};
  begin_products();
#pragma unroll
  for (int kk = 0; kk < 4; ++kk) {
    multiply_registers<KP, true>(sums, c[kk], rows + kk * KP * 2, add || kk > 0);
  }
}

/// Not committed: dq[64 queries x KP] = ds[64 queries x 128 keys] K.
template <int KP>
__device__ __forceinline__ void begin_dq(float (&dq)[KP / 8][4], std::uint32_t slope_half,
                                         std::uint32_t keys) {
  const Described<128> left{slope_half};
  const Described<KP * 2> right{keys};
  begin_products();
#pragma unroll
  for (int kk = 0; kk < kTile / 16; ++kk) {
    multiply_tiles<KP, true>(dq, left + kk * 128, right + kk * KP * 2, kk > 0);
  }
}

/// values[i] summed over the lanes that are equal mod LAST, shared out among them: lane l keeps, at
/// the front, the N LAST / 32 sums from the (l / LAST)th such part.
template <int N, int LANES, int LAST>
__device__ __forceinline__ void sum_lanes(float (&values)[N], int lane) {
  if constexpr (LANES >= LAST) {
    static_assert(N >= 2);
    const bool upper = (lane & LANES) != 0;
    float kept[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      const float give = upper ? values[i] : values[i + N / 2];
      kept[i] = (upper ? values[i + N / 2] : values[i]) + __shfl_xor_sync(0xffffffffu, give, LANES);
    }
    sum_lanes<N / 2, LANES / 2, LAST>(kept, lane);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) values[i] = kept[i];
  }
}

/// This warp's column sums, KP / 32 columns a lane.
template <int KP>
struct Columns {
  float dq[KP / 32], dy[KP / 32];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < KP / 32; ++i) dq[i] = dy[i] = 0;
  }
  __device__ __forceinline__ void add_dq(const float (&rows)[KP / 8][4], int lane) {
    float sums[KP / 4];
#pragma unroll
    for (int i = 0; i < KP / 4; ++i) sums[i] = rows[i / 2][i % 2] + rows[i / 2][i % 2 + 2];
    sum_lanes<KP / 4, 16, 4>(sums, lane);
#pragma unroll
    for (int i = 0; i < KP / 32; ++i) dq[i] += sums[i];
  }
  /// Of 16 rows of dy in a tile, as a product with ones: all rows of its result are the sums.
  __device__ __forceinline__ void add_dy(std::uint32_t rows, const std::uint32_t (&ones)[4],
                                         int lane) {
    float sums[KP / 8][4] = {};
#pragma unroll
    for (int n = 0; n < KP / 16; ++n) {
      std::uint32_t b[4];
      load_matrices_turned(b, (rows + turned_offset<KP>(lane)) ^ (n << 5));
      multiply(sums[2 * n], ones, b[0], b[1]);
      multiply(sums[2 * n + 1], ones, b[2], b[3]);
    }
#pragma unroll
    for (int i = 0; i < KP / 4; ++i) {
      const int of = lane >> 2;
      if (i / (KP / 32) == of) dy[i % (KP / 32)] += sums[i / 2][i % 2];
    }
  }
  /// The first of the columns that this lane holds.
  static __device__ __forceinline__ int at(int lane) {
    const int i = (lane >> 2) * (KP / 32);  // of the sums of add_dq()
    return i / 2 * 8 + (lane & 3) * 2 + i % 2;
  }
};

/// dq so far of a warp's 16 queries: in the order of its threads.
template <int KP>
__device__ __forceinline__ float* sums_place(const FlashArgs& args, const Walk& at, int warp) {
  const int part = ((blockIdx.x * args.group + at.head) * args.tiles + at.tile) * 8 + warp;
  return args.dq_sums + static_cast<std::int64_t>(part) * (16 * KP);
}

/// Until the copy engine is done with all but the last LATER things that this warp gave it.
template <int LATER>
__device__ __forceinline__ void end_additions() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(LATER) : "memory");
  __syncwarp();
}

/// This warp's 16 rows of c, times `factor`, as bf16: through 16 rows of shared memory that no
/// other warp may use.
template <int KP>
__device__ __forceinline__ void send_sums(const float (&c)[KP / 8][4], float factor,
                                          std::uint32_t rows, const CUtensorMap& map, int head,
                                          int row, int b, int lane) {
#pragma unroll
  for (int kk = 0; kk < KP / 16; ++kk) {
    std::uint32_t packed[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float(&four)[4] = c[2 * kk + i / 2];
      packed[i] = pack(four[i % 2 * 2] * factor, four[i % 2 * 2 + 1] * factor);
    }
    store_matrices((rows + left_offset<KP>(lane)) ^ (kk << 5), packed);
  }
  publish_shared();
  __syncwarp();
  if (lane == 0) {
    send_rows(map, head, row, b, rows);
    commit_stores();
  }
  __syncwarp();
}

/// One lane: floats from shared memory over, or added to, those at `to`.
__device__ __forceinline__ void begin_addition(float* to, std::uint32_t from, int bytes, bool add) {
  if (add) {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
        "r"(from), "r"(bytes)
        : "memory");
  } else {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from),
                 "r"(bytes)
                 : "memory");
  }
  commit_stores();
}

/// Brings the sums that the last visit of a tile adds to its own dq; one group of copies.
template <int KP, int LATER>
__device__ __forceinline__ void fetch_sums(const FlashArgs& args, const Walk& at,
                                           std::uint32_t own_sums, int warp, int lane) {
  if (at.last_visit(args) && !at.first_visit(args)) {
    end_additions<LATER>();
    asm volatile("fence.proxy.async;" ::: "memory");
    const float* from = sums_place<KP>(args, at, warp) + lane * 4;
#pragma unroll
    for (int n = 0; n < KP / 8; ++n) {
      copy_async_16(own_sums + (n * 32 + lane) * 16, from + n * 128, true);
    }
  }
  commit_copies();
}

template <int KP, int LATER>
__device__ __forceinline__ void store_dq(const float (&dq)[KP / 8][4], const AdjointMaps& maps,
                                         const FlashArgs& args, const Walk& at,
                                         std::uint32_t own_sums, Columns<KP>& columns, int warp,
                                         int lane) {
  const bool first = at.first_visit(args);
  if (at.last_visit(args)) {
    float rows[KP / 8][4];
    wait_copies();
#pragma unroll
    for (int n = 0; n < KP / 8; ++n) {
      float before[4] = {0, 0, 0, 0};
      if (!first) {
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(before[0]), "=f"(before[1]), "=f"(before[2]), "=f"(before[3])
                     : "r"(own_sums + (n * 32 + lane) * 16)
                     : "memory");
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) rows[n][i] = dq[n][i] + before[i];
    }
    if (args.columns != nullptr) columns.add_dq(rows, lane);
    if (first) end_additions<LATER>();
    __syncwarp();
    return send_sums<KP>(rows, args.scale, own_sums, maps.dq, at.query_head(args),
                         at.tile * kTile + warp * 16, at.b, lane);
  }
  end_additions<LATER>();  // of the tile before: its place in shared memory is free, its sums are
                           // whole
#pragma unroll
  for (int n = 0; n < KP / 8; ++n) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(own_sums + (n * 32 + lane) * 16),
                 "f"(dq[n][0]), "f"(dq[n][1]), "f"(dq[n][2]), "f"(dq[n][3])
                 : "memory");
  }
  publish_shared();
  __syncwarp();
  if (lane == 0) {
    begin_addition(sums_place<KP>(args, at, warp), own_sums, Memory<KP>::kWarpSums, !first);
  }
  __syncwarp();
}

/// lse2 and delta of a warp's 16 queries, to `numbers` and to scratch, and the column sums of dy.
/// delta is the diagonal of dy y^T.
template <int KP>
__device__ __forceinline__ void measure(const FlashArgs& args, const Walk& at,
                                        std::uint32_t dy_rows, std::uint32_t y_rows, float* numbers,
                                        Columns<KP>& columns, int warp, int lane) {
  float products[2][4] = {};
#pragma unroll
  for (int kk = 0; kk < KP / 16; ++kk) {
    std::uint32_t a[4], b[4];
    load_matrices(a, (dy_rows + left_offset<KP>(lane)) ^ (kk << 5));
    load_matrices(b, (y_rows + right_offset<KP>(lane)) ^ (kk << 5));
    multiply(products[0], a, b[0], b[1]);
    multiply(products[1], a, b[2], b[3]);
  }
  const int row = lane >> 2;
  const bool odd = row & 1;
  if (row / 2 == (lane & 3)) {  // this lane has rows `row` and row + 8 of the diagonal
    float* kept = at.numbers(args);
    const float delta[2] = {odd ? products[0][1] : products[0][0],
                            odd ? products[1][3] : products[1][2]};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = warp * 16 + half * 8 + row;
      kept[i] = numbers[i] = numbers[i] * kLog2E;
      kept[kTile + i] = numbers[kTile + i] = delta[half];
    }
  }
  if (args.columns == nullptr) return;
  // Column k of the ones is 0 where row k of dy sees no key.
  const int none = args.above + args.below < 0 ? args.context : -args.above;
  const int i = at.tile * kTile + warp * 16 + (lane & 3) * 2;
  const std::uint32_t low = (i >= none ? 0x3f80u : 0u) | (i + 1 >= none ? 0x3f800000u : 0u);
  const std::uint32_t high = (i + 8 >= none ? 0x3f80u : 0u) | (i + 9 >= none ? 0x3f800000u : 0u);
  columns.add_dy(dy_rows, {low, low, high, high}, lane);
}

/// The column sums of a finished item: the warps' together, through `memory` that no one uses.
template <int KP>
__device__ __forceinline__ void store_columns(const FlashArgs& args, const Walk& at,
                                              Columns<KP>& columns, float* memory, int warp,
                                              int lane) {
#pragma unroll
  for (int i = 0; i < KP / 32; ++i) {
    memory[warp * 2 * KP + Columns<KP>::at(lane) + i] = columns.dq[i] * args.scale;
    memory[warp * 2 * KP + KP + Columns<KP>::at(lane) + i] = columns.dy[i];
  }
  columns.clear();
  __syncthreads();
  const int column = threadIdx.x % KP, kind = threadIdx.x / KP;
  if (kind > 1 || column >= args.head_size) return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < 8; ++w) sum += memory[w * 2 * KP + threadIdx.x];
  const int heads = (at.b * 2 + kind) * args.heads + at.key_head;
  args.columns[static_cast<std::int64_t>(heads) * args.head_size + column] = sum;
}

template <int KP>
__global__ void __launch_bounds__(kThreads, 1)
    fused_kernel(const __grid_constant__ AdjointMaps maps, const FlashArgs args) {
#if FATHOM_WGMMA
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
  int last_head = 0, last_tile = 0;  // of the step before
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < 4; ++i) make_barrier(base + M::kBarriers + 8 * i, 1);
    publish_barriers();
    load_keys<KP>(maps, next, base, base + M::kBarriers + 16);
    load_queries<KP>(maps, args, next, base + M::kQueries, base + M::kNumbers, base + M::kBarriers);
  }
  load_fresh<KP>(args, next, base + M::kNumbers, base + M::kSlopes + warp * M::kFresh);
  commit_copies();
  bool new_keys = true;
  std::uint32_t key_buffer = 0, key_parity = 0;
  for (int step = 0; next.inside(args); ++step) {
    const Walk here = next;
    const bool pending = !new_keys;  // the dq product of the tile before
    const std::uint32_t buffer = step & 1;
    const std::uint32_t keys = base + key_buffer * 2 * M::kTileBytes;
    // In units of 16 bytes, as the products want them.
    const std::uint32_t keys_at = base / 16 + key_buffer * (2 * M::kTileBytes / 16);
    const std::uint32_t k_rows = keys_at + group * (kHalf * KP * 2 / 16);
    const std::uint32_t v_rows = k_rows + M::kTileBytes / 16;
    const std::uint32_t q_at = base / 16 + M::kQueries / 16 + buffer * (2 * M::kTileBytes / 16);
    const std::uint32_t dy_at = q_at + M::kTileBytes / 16;
    const std::uint32_t own_slopes = base / 16 + M::kSlopes / 16 + group * (M::kSlopeHalf / 16);
    constexpr std::uint32_t kSecond = kHalf * KP * 2 / 16;  // half of a tile
    const std::uint32_t q = base + M::kQueries + buffer * 2 * M::kTileBytes;
    const std::uint32_t dy = q + M::kTileBytes;
    const std::uint32_t ds = base + M::kSlopes + buffer * 2 * M::kSlopeHalf;
    const std::uint32_t ds_rows = ds + warp * 16 * 128 + left_offset<64>(lane);
    float* all_numbers = reinterpret_cast<float*>(memory + M::kNumbers) + buffer * 2 * kTile;
    const float* numbers = all_numbers + (lane & 3) * 2;
    const int row0 = here.keys * kTile + warp * 16;
    wait_copies();
    publish_shared();
    __syncthreads();  // ds^T of the last tile is whole, its buffers are free
    wait_in_loop(base + M::kBarriers + 8 * buffer, (step >> 1) & 1);
    if (new_keys) {
      wait_in_loop(base + M::kBarriers + 16 + 8 * key_buffer, key_parity);
      key_parity ^= key_buffer;
    }
    // Of the two halves: new registers at every step.
    float s[2][8][4], dp[2][8][4], dq[KP / 8][4];
    begin_scores<KP>(s[0], k_rows, q_at);
    commit_products();
    begin_scores<KP>(dp[0], v_rows, dy_at);
    commit_products();
    if (pending) {
      begin_dq<KP>(dq, own_slopes + (buffer ^ 1) * (2 * M::kSlopeHalf / 16), keys_at);
    }
    commit_products();
    Walk last = here;
    last.head = last_head;
    last.tile = last_tile;
    if (pending) fetch_sums<KP, 0>(args, last, own_sums, warp, lane);
    if (here.first_visit(args)) {
      __syncwarp();
      measure<KP>(args, here, dy + warp * 16 * KP * 2, ds + warp * M::kFresh, all_numbers, columns,
                  warp, lane);
      asm volatile("fence.proxy.async;" ::: "memory");  // the copy engine will read what it left
      __syncthreads();
    }
    new_keys = next.advance(args);
    if (threadIdx.x == 0 && next.inside(args)) {
      if (new_keys) {
        load_keys<KP>(maps, next, base + (key_buffer ^ 1) * 2 * M::kTileBytes,
                      base + M::kBarriers + 16 + 8 * (key_buffer ^ 1));
      }
      load_queries<KP>(maps, args, next, base + M::kQueries + (buffer ^ 1) * 2 * M::kTileBytes,
                       base + M::kNumbers + (buffer ^ 1) * 8 * kTile,
                       base + M::kBarriers + 8 * (buffer ^ 1));
    }
    std::uint32_t a[4][4], d[4][4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (half == 0) wait_products<2>();
      if (half == 1) wait_products<1>();
      const int i0 = here.tile * kTile + half * kHalf;
      const bool whole = i0 + kHalf - 1 <= row0 + args.below && i0 >= row0 + 15 - args.above &&
                         row0 + 15 < args.context;
      // Whether any of these queries sees any of this warp's keys.
      const bool seen = row0 <= i0 + kHalf - 1 + args.above && row0 + 15 >= i0 - args.below;
      pin(s[half]);
      if (seen) {
        if (!whole) mask(s[half], args, row0, i0, lane);
        weights(s[half], numbers + half * kHalf, args.scale_log2);
#pragma unroll
        for (int kk = 0; kk < 4; ++kk) pack_columns(a[kk], s[half], kk);
      } else {
        clear(a);
      }
      begin_sums<KP>(dv, a, dy_at + half * kSecond, pending || half > 0);
      commit_products();
      wait_products<1>();
      if (half == 0 && pending) {  // the dq product is done as well: its registers are needed
        pin(dq);
        store_dq<KP, 0>(dq, maps, args, last, own_sums, columns, warp, lane);
      }
      pin(dp[half]);
      if (seen) {
        slopes(dp[half], s[half], numbers + kTile + half * kHalf);
#pragma unroll
        for (int kk = 0; kk < 4; ++kk) pack_columns(d[kk], dp[half], kk);
      } else {
        clear(d);
      }
      begin_sums<KP>(dk, d, q_at + half * kSecond, pending || half > 0);
      commit_products();
      if (half == 0) {
        begin_scores<KP>(s[1], k_rows, q_at + kSecond);
        commit_products();
        begin_scores<KP>(dp[1], v_rows, dy_at + kSecond);
        commit_products();
      }
#pragma unroll
      for (int kk = 0; kk < 4; ++kk) {
        store_matrices((ds_rows ^ (kk << 5)) + half * M::kSlopeHalf, d[kk]);
      }
      if (half == 1) continue;
      if (next.inside(args) && next.first_visit(args)) {
        // This warpgroup's dq product read from where y goes.
        asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
        load_fresh<KP>(args, next, base + M::kNumbers + (buffer ^ 1) * 8 * kTile,
                       base + M::kSlopes + (buffer ^ 1) * 2 * M::kSlopeHalf + warp * M::kFresh);
      }
      commit_copies();
    }
    wait_products<0>();
    pin(dk);
    pin(dv);
    last_head = here.head;
    last_tile = here.tile;
    if (!new_keys) continue;

    publish_shared();
    __syncthreads();  // ds^T is whole
    float dq_last[KP / 8][4];
    begin_dq<KP>(dq_last, own_slopes + buffer * (2 * M::kSlopeHalf / 16), keys_at);
    commit_products();
    fetch_sums<KP, 0>(args, here, own_sums, warp, lane);
    // Through tiles that no one reads any more.
    send_sums<KP>(dk, args.scale, q + warp * 16 * KP * 2, maps.dk, here.key_head, row0, here.b,
                  lane);
    send_sums<KP>(dv, 1, keys + M::kTileBytes + warp * 16 * KP * 2, maps.dv, here.key_head, row0,
                  here.b, lane);
    wait_products<0>();
    pin(dq_last);
    store_dq<KP, 2>(dq_last, maps, args, here, own_sums, columns, warp, lane);
    wait_stores_read<1>();  // of dk and dv
    if (args.columns != nullptr && next.item != here.item) {
      store_columns<KP>(args, here, columns, reinterpret_cast<float*>(memory + (dy - base)), warp,
                        lane);
    }
    key_buffer ^= 1;
  }
  end_additions<0>();
#else
  __trap();  // compiled for a GPU without these products: never launched there
#endif
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
void launch(FlashArgs args, cudaStream_t stream) {
  AdjointMaps maps;
  if (!make_adjoint_maps(maps, args, KP)) {
    throw DeviceError("attention backward: the driver describes no tensors to the copy engine");
  }
  args.tiles = (args.context + kTile - 1) / kTile;
  args.group = args.heads / args.key_heads;
  cudaFuncSetAttribute(fused_kernel<KP>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       Memory<KP>::kBytes);
  const int blocks = std::min(args.batch * args.key_heads, kFusedBlocks);
  fused_kernel<KP><<<blocks, kThreads, Memory<KP>::kBytes, stream>>>(maps, args);
  check_launch();
}

}  // namespace

void launch_backward_fused(const FlashArgs& args, cudaStream_t stream) {
  args.head_size <= 32 ? launch<32>(args, stream) : launch<64>(args, stream);
}

void launch_total_columns(const FlashArgs& args, float* totals, bool add, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(3 * args.heads * args.head_size + 31) / 32;
  total_columns_kernel<<<blocks, dim3(32, 32), 0, stream>>>(args, totals, add);
  check_launch();
}

}  // namespace fathom::engine::cuda::flash
