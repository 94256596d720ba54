// How Hopper's backward of attention (hopper_backward.cu) lays out shared memory, walks over keys
// and queries, and requests their tiles.
#pragma once

#include "engine/ops/attention/cuda/hopper_fragments.cuh"

namespace fathom::engine::cuda::flash::backward {

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
  static constexpr int kWarpSums = 16 * KP * 4;              // dq of a warp, to be added
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

/// By one thread: requests k and v of a block of keys.
template <int KP>
__device__ __forceinline__ void load_keys(const BackwardMaps& maps, const Walk& at,
                                          std::uint32_t tiles, std::uint32_t barrier) {
  mbarrier_arrive_expect_tx(barrier, 2 * Memory<KP>::kTileBytes);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    tma_load_4d(tiles + i * kHalf * KP * 2, i < 2 ? maps.k : maps.v, 0, at.key_head,
                at.keys * kTile + i % 2 * kHalf, at.b, barrier);
  }
}

/// By one thread: requests q and dy of a tile, and its numbers if they are known. Rows beyond T get
/// zeros everywhere: p = 1, but dy = ds = 0.
template <int KP>
__device__ __forceinline__ void load_queries(const BackwardMaps& maps, const FlashArgs& args,
                                             const Walk& at, std::uint32_t tiles,
                                             std::uint32_t numbers, std::uint32_t barrier) {
  const bool known = !at.first_visit(args);
  const int h = at.query_head(args);
  mbarrier_arrive_expect_tx(barrier, 2 * Memory<KP>::kTileBytes + (known ? 2 * kTile * 4 : 0));
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    tma_load_4d(tiles + i * kHalf * KP * 2, i < 2 ? maps.q : maps.dy, 0, h,
                at.tile * kTile + i % 2 * kHalf, at.b, barrier);
  }
  if (known) {
    tma_load_bytes<2 * kTile * 4>(numbers, at.numbers(args), barrier);
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
  if (thread < kTile) cp_async_4(numbers + thread * 4, inside ? stats + thread : stats, inside);
  constexpr int kChunks = KP / 8, kStep = 32 / kChunks;
  const int row = thread % 32 / kChunks, chunk = thread % kChunks, row0 = thread / 32 * 16;
  const bf16* y = args.y_in + (at.first_row(args) + i0 + row0) * args.y_stride +
                  static_cast<std::int64_t>(h) * args.head_size;
#pragma unroll
  for (int r = row; r < row + 16; r += kStep) {
    const bool valid = row0 + r < left && chunk * 8 < args.head_size;
    cp_async_16(y_rows + chunk_offset<KP>(r, chunk), valid ? y + r * args.y_stride + chunk * 8 : y,
                valid);
  }
}

}  // namespace fathom::engine::cuda::flash::backward
