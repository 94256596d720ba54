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
// The first block of keys that a query sees makes lse2 = stats log2(e) and delta = <dy, y> and
// leaves them in scratch for the others.
//
// Column sums, if asked for: those of dq are added where its rows are rounded. Of the others none
// has to be computed, since a row of weights sums to 1 and a row of ds to 0:
//   sum_j dv_j = sum_i dy_i over the rows i that see a key,   sum_j dk_j = 0.
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
  static constexpr int kSums = kSlopes + 4 * kSlopeHalf;       // after two of ds^T
  static constexpr int kWarpSums = 16 * KP * 4;                // dq of a warp on its way
  static constexpr int kNumbers = kSums + 8 * kWarpSums;
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
  __device__ __forceinline__ bool backwards(const FlashArgs& args) const {
    return (args.variant & 1) != 0 && (keys & 1) != 0;
  }
  /// Returns whether a new block of keys begins.
  __device__ __forceinline__ bool advance(const FlashArgs& args) {
    const int last_head = args.heads / args.key_heads - 1;
    const int step = backwards(args) ? -1 : 1;
    if (tile != (step > 0 ? last_tile(args) : first_tile(args))) {
      tile += step;
      return false;
    }
    const bool new_keys = head == (step > 0 ? last_head : 0);
    if (new_keys && ++keys == args.tiles) {
      keys = 0;
      item += gridDim.x;
    }
    const bool back = backwards(args);
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
  const int thread = thread_now();
  const std::int64_t row = at.first_row(args) + at.keys * kTile;
  const int column = at.key_head(args) * args.head_size, left = args.context - at.keys * kTile;
  load_tile<KP, kTile, kThreads>(tiles, args.k + row * args.qk_stride + column, args.qk_stride,
                                 left, args.head_size, thread);
  load_tile<KP, kTile, kThreads>(tiles + Memory<KP>::kTileBytes,
                                 args.v + row * args.v_stride + column, args.v_stride, left,
                                 args.head_size, thread);
}

/// The 16-byte chunks of a warpgroup's half of a tile of queries, dealt out to its threads.
template <int KP>
struct OwnChunk {
  int row, chunk;
  std::uint32_t offset;  // where a warpgroup's chunks lie in the order of its threads

  __device__ __forceinline__ OwnChunk(int thread, int part) {
    row = thread / 128 * kHalf + (part * 128 + thread % 128) / (KP / 8);
    chunk = thread % (KP / 8);
    offset = (part * 128 + thread % 128) * 16;
  }
};

/// q, dy and what belongs to their rows. At a tile's first visit every thread brings the parts of y
/// that it will multiply with dy itself, to `y_parts` of its warpgroup.
template <int KP>
__device__ __forceinline__ void load_queries(const FlashArgs& args, const Walk& at,
                                             std::uint32_t tiles, std::uint32_t numbers,
                                             std::uint32_t y_parts) {
  const int i0 = at.tile * kTile, left = args.context - i0, h = at.query_head(args);
  const std::int64_t row = at.first_row(args) + i0;
  const int column = h * args.head_size, thread = thread_now();
  load_tile<KP, kTile, kThreads>(tiles, args.q + row * args.qk_stride + column, args.qk_stride,
                                 left, args.head_size, thread);
  load_tile<KP, kTile, kThreads>(tiles + Memory<KP>::kTileBytes,
                                 args.dy + row * args.y_stride + column, args.y_stride, left,
                                 args.head_size, thread);
  // Rows beyond T get zeros everywhere: p = 1, but dy = ds = 0.
  static_assert(kThreads == 2 * kTile);
  const bool fresh = at.first_visit(args), weight = thread < kTile;
  const int i = thread % kTile;
  const float* from = !weight ? args.delta : fresh ? args.stats : args.lse2;
  from +=
      (static_cast<std::int64_t>(at.item / args.key_heads) * args.heads + h) * args.context + i0;
  const bool known = i < left && (weight || !fresh);
  copy_async_4(numbers + thread * 4, known ? from + i : from, known);
  if (!fresh) return;
  const bf16* y = args.y_in + row * args.y_stride + column;
#pragma unroll
  for (int part = 0; part < KP / 16; ++part) {
    const OwnChunk<KP> own(thread, part);
    const bool valid = own.row < left && own.chunk * 8 < args.head_size;
    copy_async_16(y_parts + own.offset, valid ? y + own.row * args.y_stride + own.chunk * 8 : y,
                  valid);
  }
}

/// c[64 x 64] = rows[64 x KP] tile[64 x KP]^T, not committed; `rows` also lie in `held` if HELD.
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

/// Not committed: sums[64 keys x KP] += c[64 keys x 64 queries] tile[64 queries x KP].
template <int KP>
__device__ __forceinline__ void begin_sums(float (&sums)[KP / 8][4], const std::uint32_t (&c)[4][4],
                                           std::uint32_t tile) {
  const std::uint64_t rows = describe<KP * 2>(tile);
  begin_products();
#pragma unroll
  for (int kk = 0; kk < 4; ++kk) {
    multiply_registers<KP, true>(sums, c[kk], rows + kk * KP * 2, true);
  }
}

/// Not committed: dq[64 queries x KP] = ds[64 queries x 128 keys] K.
template <int KP>
__device__ __forceinline__ void begin_dq(float (&dq)[KP / 8][4], std::uint32_t slope_half,
                                         std::uint32_t keys) {
  const std::uint64_t left = describe<128>(slope_half), right = describe<KP * 2>(keys);
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
      kept[i] = (upper ? values[i + N / 2] : values[i]) +
                __shfl_xor_sync(0xffffffffu, give, LANES);
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
  __device__ __forceinline__ void add_dy(float (&sums)[8], int lane) {
    sum_lanes<8, 16, KP / 8>(sums, lane);
#pragma unroll
    for (int i = 0; i < KP / 32; ++i) dy[i] += sums[i];
  }
  /// The first of the columns of dq and of dy that this lane holds.
  static __device__ __forceinline__ int dq_at(int lane) {
    const int i = (lane >> 2) * (KP / 32);  // of the sums of add_dq()
    return i / 2 * 8 + (lane & 3) * 2 + i % 2;
  }
  static __device__ __forceinline__ int dy_at(int lane) {
    return lane % (KP / 8) * 8 + lane / (KP / 8) * (KP / 32);
  }
};

/// dq so far of a warp's 16 queries: in the order of its threads.
template <int KP>
__device__ __forceinline__ float* sums_place(const FlashArgs& args, const Walk& at, int warp) {
  const int part =
      ((blockIdx.x * (args.heads / args.key_heads) + at.head) * args.tiles + at.tile) * 8 + warp;
  return args.dq_sums + static_cast<std::int64_t>(part) * (16 * KP);
}

/// Until the copy engine has added what this warp gave it.
__device__ __forceinline__ void end_additions() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  __syncwarp();
}

/// One lane: 4 N bytes of floats from shared memory over, or added to, those at `to`.
__device__ __forceinline__ void begin_addition(float* to, std::uint32_t from, int bytes, bool add,
                                               bool keep) {
  std::uint64_t policy;
  if (keep) {
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  } else {
    asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  }
  if (add) {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.f32 "
        "[%0], [%1], %2, %3;" ::"l"(to),
        "r"(from), "r"(bytes), "l"(policy)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(to),
        "r"(from), "r"(bytes), "l"(policy)
        : "memory");
  }
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Brings the sums that the last visit of a tile adds to its own dq; one group of copies.
template <int KP>
__device__ __forceinline__ void fetch_sums(const FlashArgs& args, const Walk& at,
                                           std::uint32_t own_sums, int warp, int lane) {
  if (at.last_visit(args) && !at.first_visit(args)) {
    end_additions();
    asm volatile("fence.proxy.async;" ::: "memory");
    const float* from = sums_place<KP>(args, at, warp) + lane * 4;
#pragma unroll
    for (int n = 0; n < KP / 8; ++n) {
      copy_async_16(own_sums + (n * 32 + lane) * 16, from + n * 128, true);
    }
  }
  commit_copies();
}

template <int KP>
__device__ __forceinline__ void store_dq(const float (&dq)[KP / 8][4], const FlashArgs& args,
                                         const Walk& at, std::uint32_t own_sums,
                                         Columns<KP>& columns, int warp, int lane) {
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
    const int row = at.tile * kTile + warp * 16;
    bf16* to =
        args.dq + (at.first_row(args) + row) * args.d_stride + at.query_head(args) * args.head_size;
    return store_fragment(rows, args.scale, args.scale, to, args.d_stride, args.context - row,
                          args.head_size, lane);
  }
  end_additions();  // of the tile before: its place in shared memory is free, its sums are whole
#pragma unroll
  for (int n = 0; n < KP / 8; ++n) {
    asm volatile(
        "st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(own_sums + (n * 32 + lane) * 16),
        "f"(dq[n][0]), "f"(dq[n][1]), "f"(dq[n][2]), "f"(dq[n][3])
        : "memory");
  }
  publish_shared();
  __syncwarp();
  if (lane == 0) {
    begin_addition(sums_place<KP>(args, at, warp), own_sums, Memory<KP>::kWarpSums, !first,
                   (args.variant & 2) != 0);
  }
  __syncwarp();
}

__device__ __forceinline__ uint4 read_chunk(std::uint32_t address) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(address)
               : "memory");
  return x;
}

/// lse2 and delta of a warpgroup's half of a tile, to `numbers` and to scratch, and the column sums
/// of dy.
template <int KP>
__device__ __forceinline__ void measure(const FlashArgs& args, const Walk& at, std::uint32_t dy,
                                        std::uint32_t y_parts, float* numbers,
                                        Columns<KP>& columns, int lane) {
  constexpr int kChunks = KP / 8;
  const int i0 = at.tile * kTile, thread = thread_now();
  const std::int64_t base = (static_cast<std::int64_t>(at.item / args.key_heads) * args.heads +
                             at.query_head(args)) * args.context + i0;
  float sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll
  for (int part = 0; part < KP / 16; ++part) {
    const OwnChunk<KP> own(thread, part);
    const uint4 x = read_chunk(dy + chunk_offset<KP>(own.row, own.chunk));
    const uint4 y = read_chunk(y_parts + own.offset);
    const std::uint32_t left[4] = {x.x, x.y, x.z, x.w}, right[4] = {y.x, y.y, y.z, y.w};
    const bool sees = i0 + own.row + args.above >= 0 && args.above + args.below >= 0;
    float delta = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 a = unpack(left[i]), b = unpack(right[i]);
      delta = fmaf(a.x, b.x, fmaf(a.y, b.y, delta));
      sums[2 * i] += sees ? a.x : 0.0f;
      sums[2 * i + 1] += sees ? a.y : 0.0f;
    }
#pragma unroll
    for (int lanes = kChunks / 2; lanes > 0; lanes /= 2) {
      delta += __shfl_xor_sync(0xffffffffu, delta, lanes);
    }
    const bool valid = i0 + own.row < args.context;
    if (own.chunk == 0) {
      numbers[kTile + own.row] = delta;
      if (valid) args.delta[base + own.row] = delta;
    } else if (own.chunk == 1) {
      const float lse2 = numbers[own.row] * kLog2E;
      numbers[own.row] = lse2;
      if (valid) args.lse2[base + own.row] = lse2;
    }
  }
  if (args.columns != nullptr) columns.add_dy(sums, lane);
}

/// The column sums of a finished item: the warps' together, through `memory` that no one uses.
template <int KP>
__device__ __forceinline__ void store_columns(const FlashArgs& args, const Walk& at,
                                              Columns<KP>& columns, float* memory, int warp,
                                              int lane) {
#pragma unroll
  for (int i = 0; i < KP / 32; ++i) {
    memory[warp * 2 * KP + Columns<KP>::dq_at(lane) + i] = columns.dq[i] * args.scale;
    memory[warp * 2 * KP + KP + Columns<KP>::dy_at(lane) + i] = columns.dy[i];
  }
  columns.clear();
  __syncthreads();
  const int column = threadIdx.x % KP, kind = threadIdx.x / KP;
  if (kind > 1 || column >= args.head_size) return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < 8; ++w) sum += memory[w * 2 * KP + threadIdx.x];
  const int heads = args.heads * kind + at.key_head(args);
  args.columns[(static_cast<std::int64_t>(at.item / args.key_heads) * 2 * args.heads + heads) *
                   args.head_size + column] = sum;
}

/// HELD of the key operands (k, then v) stay in registers: less to read from shared memory.
template <int KP, int HELD>
__global__ void __launch_bounds__(kThreads, 1) fused_kernel(const FlashArgs args) {
#if FATHOM_WGMMA
  using M = Memory<KP>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t base = shared_address(memory);
  const int lane = threadIdx.x & 31, warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
  const int group = warp >> 2;
  const int items = args.batch * args.key_heads;
  const std::uint32_t own_sums = base + M::kSums + warp * M::kWarpSums;
  LeftOperand<KP, 1> k, v;
  float dk[KP / 8][4], dv[KP / 8][4];
  Columns<KP> columns;
  columns.clear();

  Walk next{static_cast<int>(blockIdx.x), 0, 0, 0};
  int last_head = 0, last_tile = 0;  // of the step before
  next.tile = next.first_tile(args);
  load_keys<KP>(args, next, base);
  load_queries<KP>(args, next, base + M::kQueries, base + M::kNumbers,
                   base + M::kSlopes + group * M::kSlopeHalf);
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
    float* all_numbers = reinterpret_cast<float*>(memory + M::kNumbers) + buffer * 2 * kTile;
    const float* numbers = all_numbers + (lane & 3) * 2;
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
    // Of the two halves: new registers at every step.
    float s[2][8][4], dp[2][8][4], dq[KP / 8][4];
    begin_scores<KP, (HELD > 0)>(s[0], k, k_rows, q);
    commit_products();
    begin_scores<KP, (HELD > 1)>(dp[0], v, v_rows, dy);
    commit_products();
    if (pending) {
      const std::uint32_t other = base + M::kSlopes + (buffer ^ 1) * 2 * M::kSlopeHalf;
      begin_dq<KP>(dq, other + group * M::kSlopeHalf, keys);
    }
    commit_products();
    const Walk last{here.item, here.keys, last_head, last_tile};
    if (pending) fetch_sums<KP>(args, last, own_sums, warp, lane);
    if (here.first_visit(args)) {
      measure<KP>(args, here, dy, ds + group * M::kSlopeHalf, all_numbers, columns, lane);
      __syncthreads();
    }
    std::uint32_t a[4][4], d[4][4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (half == 0) wait_products<2>();
      if (half == 1) wait_products<1>();
      {
        pin(s[half]);
        const int i0 = here.tile * kTile + half * kHalf;
        const bool whole = i0 + kHalf - 1 <= row0 + args.below && i0 >= row0 + 15 - args.above &&
                           row0 + 15 < args.context;
        if (!whole) mask(s[half], args, row0, i0, lane);
        weights(s[half], numbers + half * kHalf, args.scale_log2);
#pragma unroll
        for (int kk = 0; kk < 4; ++kk) pack_columns(a[kk], s[half], kk);
        begin_sums<KP>(dv, a, dy + half * kHalf * KP * 2);
      }
      commit_products();
      wait_products<1>();
      if (half == 0 && pending) {  // the dq product is done as well: its registers are needed
        pin(dq);
        store_dq<KP>(dq, args, last, own_sums, columns, warp, lane);
      }
      {
        pin(dp[half]);
        slopes(dp[half], s[half], numbers + kTile + half * kHalf);
#pragma unroll
        for (int kk = 0; kk < 4; ++kk) pack_columns(d[kk], dp[half], kk);
        begin_sums<KP>(dk, d, q + half * kHalf * KP * 2);
      }
      commit_products();
      if (half == 0) {
        begin_scores<KP, (HELD > 0)>(s[1], k, k_rows, q + kHalf * KP * 2);
        commit_products();
        begin_scores<KP, (HELD > 1)>(dp[1], v, v_rows, dy + kHalf * KP * 2);
        commit_products();
      }
#pragma unroll
      for (int kk = 0; kk < 4; ++kk) {
        store_matrices((ds_rows ^ (kk << 5)) + half * M::kSlopeHalf, d[kk]);
      }
      if (half == 1) continue;
      new_keys = next.advance(args);
      if (next.item < items) {
        if (new_keys) load_keys<KP>(args, next, base + (key_buffer ^ 1) * 2 * M::kTileBytes);
        if (next.first_visit(args)) {
          // This warpgroup's dq product read from where y goes.
          asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
        }
        load_queries<KP>(args, next, base + M::kQueries + (buffer ^ 1) * 2 * M::kTileBytes,
                         base + M::kNumbers + (buffer ^ 1) * 8 * kTile,
                         base + M::kSlopes + ((buffer ^ 1) * 2 + group) * M::kSlopeHalf);
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
    begin_dq<KP>(dq_last, ds + group * M::kSlopeHalf, keys);
    commit_products();
    fetch_sums<KP>(args, here, own_sums, warp, lane);
    const std::int64_t at =
        (here.first_row(args) + row0) * args.d_stride + here.key_head(args) * args.head_size;
    store_fragment(dk, args.scale, args.scale, args.dk + at, args.d_stride, args.context - row0,
                   args.head_size, lane);
    store_fragment(dv, 1, 1, args.dv + at, args.d_stride, args.context - row0, args.head_size,
                   lane);
    wait_products<0>();
    pin(dq_last);
    store_dq<KP>(dq_last, args, here, own_sums, columns, warp, lane);
    if (args.columns != nullptr && next.item != here.item) {
      // All products with these values are over.
      store_columns<KP>(args, here, columns,
                        reinterpret_cast<float*>(memory) + (key_buffer * 2 + 1) * M::kTileBytes / 4,
                        warp, lane);
    }
    key_buffer ^= 1;
  }
  end_additions();
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

template <int KP, int HELD>
void launch(FlashArgs args, cudaStream_t stream) {
  args.tiles = (args.context + kTile - 1) / kTile;
  cudaFuncSetAttribute(fused_kernel<KP, HELD>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       Memory<KP>::kBytes);
  const int blocks = std::min(args.batch * args.key_heads, kFusedBlocks);
  fused_kernel<KP, HELD><<<blocks, kThreads, Memory<KP>::kBytes, stream>>>(args);
  check_launch();
}

}  // namespace

void launch_backward_fused(const FlashArgs& given, cudaStream_t stream) {
  FlashArgs args = given;
  const int chosen = attention_tuning().backward;
  args.variant = attention_tuning().variant;
  if (args.head_size <= 32) {
    if (chosen == 1) return launch<32, 0>(args, stream);
    if (chosen == 2) return launch<32, 1>(args, stream);
    return launch<32, 2>(args, stream);
  }
  if (chosen == 2) return launch<64, 1>(args, stream);
  if (chosen == 3) return launch<64, 2>(args, stream);
  launch<64, 0>(args, stream);
}

void launch_total_columns(const FlashArgs& args, float* totals, bool add, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(3 * args.heads * args.head_size + 31) / 32;
  total_columns_kernel<<<blocks, dim3(32, 32), 0, stream>>>(args, totals, add);
  check_launch();
}

}  // namespace fathom::engine::cuda::flash
