// What the kernels of fused_product.h share: where things lie in shared memory, fetching, and the
// work on a tile of results of 64 rows x 128 columns, which a warpgroup does.
//
// All tiles in shared memory have rows of 128 bytes in the 128-byte swizzle, 64 columns each.
// Results leave through shared memory by the copy engine, which also guards the edges: zeros come
// in, nothing goes out.
#pragma once

#include "engine/cuda/activation_value.cuh"
#include "engine/cuda/attention_flash.cuh"
#include "engine/cuda/attention_wgmma.cuh"
#include "engine/cuda/bulk_copy.cuh"
#include "engine/cuda/device.cuh"
#include "engine/cuda/fused_product.h"

namespace fathom::engine::cuda::fused {

constexpr int kRows = 64, kColumns = 128, kBlock = 64;  // of a tile of results; of K
constexpr int kChunkBytes = kRows * kBlock * 2;         // 64 x 64 of anything
constexpr int kWeightBytes = kColumns * kBlock * 2;     // of b, for one block of K
constexpr int kBufferBytes = 2 * kChunkBytes;           // see Workspace
constexpr int kMostStages = 8, kMostBuffers = 4, kMostGroups = 3;

/// A place in a ring of buffers, and the parity of this time around.
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

/// Where a warpgroup's things lie in shared memory. A buffer is, forward, 64 columns of pre and
/// then of out; on the way back 128 columns of pre, which out replaces.
struct Workspace {
  std::uint32_t weights, buffers, stages, bias, weights_full, ring, tickets;

  __device__ __forceinline__ std::uint32_t stage(int s) const { return stages + s * kChunkBytes; }
  __device__ __forceinline__ std::uint32_t buffer(int i) const {
    return buffers + i * kBufferBytes;
  }
  __device__ __forceinline__ std::uint32_t full(int s) const { return ring + s * 8; }
  __device__ __forceinline__ std::uint32_t empty(int s) const {
    return ring + (kMostStages + s) * 8;
  }
  __device__ __forceinline__ std::uint32_t buffer_full(int i) const { return tickets + i * 8; }
  __device__ __forceinline__ std::uint32_t buffer_empty(int i) const {
    return tickets + (kMostBuffers + i) * 8;
  }
};

/// Which tiles of rows a worker takes.
struct Share {
  int first, step;
};

/// b of a block of K, 128 columns.
template <bool kBackward>
__device__ __forceinline__ void fetch_weights(const FusedArgs& args, std::uint32_t to, int kb,
                                              int column, std::uint32_t barrier) {
  if constexpr (kBackward) {  // [K, N]: two tiles of 64 rows x 64 columns
    load_tile(to, args.b, column, kb * kBlock, barrier);
    load_tile(to + kChunkBytes, args.b, column + 64, kb * kBlock, barrier);
  } else {  // [N, K]: one tile of 128 rows
    load_tile(to, args.b, kb * kBlock, column, barrier);
  }
}

/// pre of a tile into a buffer, once that is free.
__device__ __forceinline__ void fetch_pre(const FusedArgs& args, const Workspace& at,
                                          const Place& buffer, int tile, int column) {
  wait_for(at.buffer_empty(buffer.index), buffer.parity ^ 1);
  const std::uint32_t full = at.buffer_full(buffer.index), to = at.buffer(buffer.index);
  arrive_expecting(full, kBufferBytes);
  load_tile(to, args.pre, column, tile * kRows, full);
  load_tile(to + kChunkBytes, args.pre, column + 64, tile * kRows, full);
}

/// All threads of a warpgroup.
__device__ __forceinline__ void meet(int group) {
  asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

/// All threads that multiply.
template <int THREADS>
__device__ __forceinline__ void meet_block() {
  asm volatile("bar.sync %0, %1;" ::"n"(kMostGroups + 1), "n"(THREADS) : "memory");
}

/// The four 8 x 8 squares of 16 columns from c[n] on, as store_matrices wants them.
__device__ __forceinline__ void pack_squares(std::uint32_t (&r)[4], const float (&c)[2][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) r[i] = pack_bf16(c[i >> 1][(i & 1) * 2], c[i >> 1][(i & 1) * 2 + 1]);
}

/// pre and out of a tile, 64 columns at a time.
template <ActivationKind kKind>
__device__ __forceinline__ void finish_forward(const FusedArgs& args, const Workspace& at,
                                               const float (&c)[16][4], const float* bias,
                                               Place& buffer, int group, int tile, int column) {
  const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3;
  const bool leader = threadIdx.x % 128 == 0;
  const std::uint32_t own = warp * 16 * 128 + flash::left_offset<64>(lane);
#pragma unroll
  for (int chunk = 0; chunk < 2; ++chunk) {
    if (column + chunk * 64 >= args.columns) break;
    const std::uint32_t to = at.buffer(buffer.index);
    if (leader) {  // the buffer's last results are out
      if (args.buffers == 1) wait_stores_read<0>();
      if (args.buffers == 2) wait_stores_read<1>();
    }
    meet(group);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int n = chunk * 8 + j * 2;
      float y[2][4];
      const float pre[2][4] = {{c[n][0], c[n][1], c[n][2], c[n][3]},
                               {c[n + 1][0], c[n + 1][1], c[n + 1][2], c[n + 1][3]}};
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float2 b = *reinterpret_cast<const float2*>(bias + (n + e) * 8);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          y[e][i] = evaluate<kKind, true>(pre[e][i] + ((i & 1) ? b.y : b.x)).y;
        }
      }
      std::uint32_t r[4];
      pack_squares(r, pre);
      flash::store_matrices((to + own) ^ (j << 5), r);
      pack_squares(r, y);
      flash::store_matrices((to + kChunkBytes + own) ^ (j << 5), r);
    }
    flash::publish_shared();
    meet(group);
    if (leader) {
      store_tile(args.pre, column + chunk * 64, tile * kRows, to);
      store_tile(args.out, column + chunk * 64, tile * kRows, to + kChunkBytes);
      commit_stores();
    }
    buffer.advance(args.buffers);
  }
}

/// out of a tile in the place of pre; adds to the sums of this thread's columns.
template <ActivationKind kKind>
__device__ __forceinline__ void finish_backward(const FusedArgs& args, const Workspace& at,
                                                const float (&c)[16][4], float (&sums)[16][2],
                                                const float* bias, const Place& buffer, int group,
                                                int tile, int column) {
  const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3;
  const std::uint32_t tiles = at.buffer(buffer.index);
  const std::uint32_t own = tiles + warp * 16 * 128 + flash::left_offset<64>(lane);
  wait_for(at.buffer_full(buffer.index), buffer.parity);
#pragma unroll
  for (int chunk = 0; chunk < 2; ++chunk) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int n = chunk * 8 + j * 2;
      const std::uint32_t place = (own ^ (j << 5)) + chunk * kChunkBytes;
      std::uint32_t r[4];
      flash::load_matrices(r, place);
      float du[2][4];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float2 b = *reinterpret_cast<const float2*>(bias + (n + e) * 8);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float2 u = unpack_bf16(r[2 * e + half]);
          const float* d = c[n + e] + 2 * half;
          du[e][2 * half] = d[0] * evaluate<kKind, true>(u.x + b.x).slope;
          du[e][2 * half + 1] = d[1] * evaluate<kKind, true>(u.y + b.y).slope;
        }
        sums[n + e][0] += du[e][0] + du[e][2];
        sums[n + e][1] += du[e][1] + du[e][3];
      }
      pack_squares(r, du);
      flash::store_matrices(place, r);
    }
  }
  flash::publish_shared();
  meet(group);
  if (threadIdx.x % 128 == 0) {
    if (column < args.columns) store_tile(args.out, column, tile * kRows, tiles);
    if (column + 64 < args.columns) {
      store_tile(args.out, column + 64, tile * kRows, tiles + kChunkBytes);
    }
    commit_stores();
  }
}

/// The column sums of `warps` warps from `first` on, which hold the same columns, in a fixed order:
/// lanes, then warps. `rows` f32 [warps, 128] is free; `meet_all` lets these warps meet.
template <class Meet>
__device__ __forceinline__ void put_sums(const FusedArgs& args, float (&sums)[16][2], float* rows,
                                         int first, int warps, int part, int column,
                                         const Meet& meet_all) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int n = 0; n < 16; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
#pragma unroll
      for (int lanes = 4; lanes < 32; lanes *= 2) {
        sums[n][e] += __shfl_xor_sync(0xffffffffu, sums[n][e], lanes);
      }
    }
  }
  if (lane < 4) {
    float* own = rows + (static_cast<int>(threadIdx.x >> 5) - first) * kColumns;
#pragma unroll
    for (int n = 0; n < 16; ++n) {
      own[n * 8 + lane * 2] = sums[n][0];
      own[n * 8 + lane * 2 + 1] = sums[n][1];
    }
  }
  meet_all();
  const int c = static_cast<int>(threadIdx.x) - first * 32;
  if (c >= kColumns || column + c >= args.columns) return;
  float sum = 0;
  for (int w = 0; w < warps; ++w) sum += rows[w * kColumns + c];
  args.partial[static_cast<std::int64_t>(part) * args.columns + column + c] = sum;
}

/// b of a block of K, 128 columns, for the products.
template <bool kBackward>
__device__ __forceinline__ std::uint64_t describe_weights(std::uint32_t weights) {
  return kBackward ? flash::describe_turned<kChunkBytes>(weights) : flash::describe<128>(weights);
}
template <bool kBackward>
constexpr int kWeightStep = kBackward ? 128 : 2;  // 16 of K further, in units of 16 bytes

}  // namespace fathom::engine::cuda::fused
