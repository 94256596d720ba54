// What Hopper's backward of attention (hopper_backward.cu) sums outside its GEMMs: dq in scratch by
// TMA, the columns of the gradients, and delta.
#pragma once

#include "engine/ops/attention/cuda/hopper_backward_walk.cuh"

namespace fathom::engine::cuda::flash::backward {

/// Sums values[i] over the lanes that are equal mod LAST and divides the sums among them: lane l
/// keeps, at the front, the (l / LAST)th part of N LAST / 32 sums.
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

/// This warp's column sums, KP / 32 columns per lane.
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
  /// Adds 16 rows of dy in a tile by multiplying by ones: all rows of the result are the sums.
  __device__ __forceinline__ void add_dy(std::uint32_t rows, const std::uint32_t (&ones)[4],
                                         int lane) {
    float sums[KP / 8][4] = {};
#pragma unroll
    for (int n = 0; n < KP / 16; ++n) {
      std::uint32_t b[4];
      ldmatrix_x4_trans(b, (rows + b_trans_offset<KP>(lane)) ^ (n << 5));
      mma_m16n8k16(sums[2 * n], ones, b[0], b[1]);
      mma_m16n8k16(sums[2 * n + 1], ones, b[2], b[3]);
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

/// dq so far of a warp's 16 queries, in the order of the threads.
template <int KP>
__device__ __forceinline__ float* sums_place(const FlashArgs& args, const Walk& at, int warp) {
  const int part = ((blockIdx.x * args.group + at.head) * args.tiles + at.tile) * 8 + warp;
  return args.dq_sums + static_cast<std::int64_t>(part) * (16 * KP);
}

/// Waits until TMA is done with all but the last LATER groups of copies of this warp.
template <int LATER>
__device__ __forceinline__ void wait_additions() {
  tma_store_wait<LATER>();
  __syncwarp();
}

/// Stores this warp's 16 rows of c, times `factor`, as bf16, through 16 rows of shared memory that
/// no other warp may use.
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
    stmatrix_x4((rows + a_offset<KP>(lane)) ^ (kk << 5), packed);
  }
  fence_proxy_async_shared();
  __syncwarp();
  if (lane == 0) {
    tma_store_4d(map, 0, head, row, b, rows);
    tma_store_commit();
  }
  __syncwarp();
}

/// By one lane: floats from shared memory overwrite, or are added to, those at `to`.
__device__ __forceinline__ void begin_addition(float* to, std::uint32_t from, int bytes, bool add) {
  if (add) {
    tma_reduce_add(to, from, bytes);
  } else {
    tma_store_bytes(to, from, bytes);
  }
  tma_store_commit();
}

/// Fetches the sums that the last visit of a tile adds to its own dq; one group of copies.
template <int KP, int LATER>
__device__ __forceinline__ void fetch_sums(const FlashArgs& args, const Walk& at,
                                           std::uint32_t own_sums, int warp, int lane) {
  if (at.last_visit(args) && !at.first_visit(args)) {
    wait_additions<LATER>();
    fence_proxy_async();
    const float* from = sums_place<KP>(args, at, warp) + lane * 4;
#pragma unroll
    for (int n = 0; n < KP / 8; ++n) {
      cp_async_16(own_sums + (n * 32 + lane) * 16, from + n * 128, true);
    }
  }
  cp_async_commit();
}

template <int KP, int LATER>
__device__ __forceinline__ void store_dq(const float (&dq)[KP / 8][4], const BackwardMaps& maps,
                                         const FlashArgs& args, const Walk& at,
                                         std::uint32_t own_sums, Columns<KP>& columns, int warp,
                                         int lane) {
  const bool first = at.first_visit(args);
  if (at.last_visit(args)) {
    float rows[KP / 8][4];
    cp_async_wait_all();
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
    if (first) wait_additions<LATER>();
    __syncwarp();
    return send_sums<KP>(rows, args.scale, own_sums, maps.dq, at.query_head(args),
                         at.tile * kTile + warp * 16, at.b, lane);
  }
  wait_additions<LATER>();  // of the previous tile: its place in shared memory is free, its sums
                            // are complete
#pragma unroll
  for (int n = 0; n < KP / 8; ++n) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(own_sums + (n * 32 + lane) * 16),
                 "f"(dq[n][0]), "f"(dq[n][1]), "f"(dq[n][2]), "f"(dq[n][3])
                 : "memory");
  }
  fence_proxy_async_shared();
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
  float dots[2][4] = {};
#pragma unroll
  for (int kk = 0; kk < KP / 16; ++kk) {
    std::uint32_t a[4], b[4];
    ldmatrix_x4(a, (dy_rows + a_offset<KP>(lane)) ^ (kk << 5));
    ldmatrix_x4(b, (y_rows + b_offset<KP>(lane)) ^ (kk << 5));
    mma_m16n8k16(dots[0], a, b[0], b[1]);
    mma_m16n8k16(dots[1], a, b[2], b[3]);
  }
  const int row = lane >> 2;
  const bool odd = row & 1;
  if (row / 2 == (lane & 3)) {  // this lane has rows `row` and row + 8 of the diagonal
    float* kept = at.numbers(args);
    const float delta[2] = {odd ? dots[0][1] : dots[0][0], odd ? dots[1][3] : dots[1][2]};
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

/// Stores the column sums of a finished item, added over its warps through the unused `memory`.
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

}  // namespace fathom::engine::cuda::flash::backward
