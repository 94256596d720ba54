// The adjoint of the norm for a tile of 64 rows whose incoming gradient dy a warpgroup holds in
// registers (row_product.h). Sums c[n][2 half + e] are of column 8 n + 2 (lane % 4) + e and row
// lane / 4 + 8 half (of a warp's 16). There is no room for h beside them: r is read twice.
#pragma once

#include "engine/cuda/row_product_forward.cuh"

namespace fathom::engine::cuda::rows {

/// What a lane holds of 32 columns and two rows of r; of incoming as it lies, see spread().
struct Batch {
  float2 r[4][2];
  uint2 incoming[2][2];
};

/// Two chunks of 8 columns of bf16 and one row: even lanes access the first, odd ones the second,
/// 8 bytes each, so that a quad fills 32 bytes.
__device__ __forceinline__ int pair_column(int lane) {
  return (lane & 1) * 8 + (lane & 2) * 2;
}
/// From the memory's order to that of the sums, columns 2 q and 2 q + 1 of either chunk, and back.
__device__ __forceinline__ uint2 spread(uint2 words, bool odd) {
  const std::uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? words.x : words.y, 1);
  return odd ? uint2{other, words.y} : uint2{words.x, other};
}

/// Sums over the 8 lanes of a column, of 4 x 2 columns: one is left to each lane, that of
/// column 8 (lane / 8) + 2 (lane % 4) + (lane / 4) % 2.
__device__ __forceinline__ float column_sums(const float (&v)[8], int lane) {
  float four[4], two[2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const bool upper = lane & 16;
    four[i] =
        (upper ? v[i + 4] : v[i]) + __shfl_xor_sync(0xffffffffu, upper ? v[i] : v[i + 4], 16);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const bool upper = lane & 8;
    two[i] = (upper ? four[i + 2] : four[i]) +
             __shfl_xor_sync(0xffffffffu, upper ? four[i] : four[i + 2], 8);
  }
  const bool upper = lane & 4;
  return (upper ? two[1] : two[0]) + __shfl_xor_sync(0xffffffffu, upper ? two[0] : two[1], 4);
}
__device__ __forceinline__ int column_of(int lane) {
  return 8 * (lane >> 3) + 2 * (lane & 3) + ((lane >> 2) & 1);
}

/// A lane's place in the tile.
struct Rows {
  std::int64_t base[2];  // of the two rows
  bool holds[2];
};

template <bool kIncoming>
__device__ __forceinline__ void fetch_batch(const RowArgs& args, const Rows& rows, int lane,
                                            int batch, Batch& to) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* r = args.given.r + rows.base[half] + batch * 32 + (lane & 3) * 2;
    const auto* incoming = static_cast<const __nv_bfloat16*>(args.given.incoming) +
                           rows.base[half] + batch * 32 + pair_column(lane);
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      const bool holds = rows.holds[half] && batch * 32 + p * 16 < args.columns;
      to.r[2 * p][half] = to.r[2 * p + 1][half] = {0, 0};
      to.incoming[p][half] = {0, 0};
      if (holds) {
        to.r[2 * p][half] = *reinterpret_cast<const float2*>(r + p * 16);
        to.r[2 * p + 1][half] = *reinterpret_cast<const float2*>(r + p * 16 + 8);
      }
      if (kIncoming && holds && args.given.incoming != nullptr) {
        to.incoming[p][half] = __ldcs(reinterpret_cast<const uint2*>(incoming + p * 16));
      }
    }
  }
}

/// Two chunks of a row, in the order of the sums.
__device__ __forceinline__ void put_pair(void* to, std::int64_t at, const float (&v)[2][2],
                                         bool odd, bool holds) {
  const uint2 words =
      spread({pack_bf16(v[0][0], v[0][1]), pack_bf16(v[1][0], v[1][1])}, odd);
  if (holds) *reinterpret_cast<uint2*>(static_cast<__nv_bfloat16*>(to) + at) = words;
}

/// `vectors` f32 [2, 64 NB]: gain and shift. Adds to the lane's column sums of dy h, dy, d_branch.
template <int NB>
__device__ __forceinline__ void finish_backward(const RowArgs& args, float (&c)[8 * NB][4],
                                                float (&sums)[3][2 * NB], const float* vectors,
                                                int tile) {
  constexpr int kWidth = 64 * NB, kBatches = 2 * NB;
  const RowOperands& given = args.given;
  const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3;
  const bool odd = lane & 1;
  const float width = static_cast<float>(args.columns);
  const float* own = vectors + (lane & 3) * 2;
  Rows rows;
  float2 stats[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = tile * 64 + warp * 16 + (lane >> 2) + half * 8;
    rows.holds[half] = row < args.rows;
    rows.base[half] = static_cast<std::int64_t>(row) * args.columns;
    stats[half] = {0, 0};
    if (rows.holds[half]) {
      stats[half] =
          *reinterpret_cast<const float2*>(given.stats + 2 * static_cast<std::int64_t>(row));
    }
  }
  // Sums over rows and columns; dy becomes g = dy gain.
  float2 sum[2] = {{0, 0}, {0, 0}};  // of g and of g h
  Batch batches[2];
  fetch_batch<false>(args, rows, lane, 0, batches[0]);
#pragma unroll
  for (int b = 0; b < kBatches; ++b) {
    if (b + 1 < kBatches) fetch_batch<false>(args, rows, lane, b + 1, batches[(b + 1) & 1]);
    const Batch& batch = batches[b & 1];
    float dyh[8], dy[8];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const float2 gain = *reinterpret_cast<const float2*>(own + b * 32 + n * 8);
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        dyh[2 * n + e] = dy[2 * n + e] = 0;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float r = e == 0 ? batch.r[n][half].x : batch.r[n][half].y;
          const float h = (r - stats[half].x) * stats[half].y;
          float& g = c[b * 4 + n][2 * half + e];
          dyh[2 * n + e] += g * h;
          dy[2 * n + e] += g;
          g *= e == 0 ? gain.x : gain.y;
          sum[half].x += g;
          sum[half].y += g * h;
        }
      }
    }
    sums[0][b] += column_sums(dyh, lane);
    sums[1][b] += column_sums(dy, lane);
  }
  float mean_g[2], mean_gh[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    mean_g[half] = args.rms ? 0 : quad_sum(sum[half].x) / width;
    mean_gh[half] = quad_sum(sum[half].y) / width;
  }
  // Results may lie on what is read: the next batch is asked for before this one's are written.
  fetch_batch<true>(args, rows, lane, 0, batches[0]);
#pragma unroll
  for (int b = 0; b < kBatches; ++b) {
    if (b + 1 < kBatches) fetch_batch<true>(args, rows, lane, b + 1, batches[(b + 1) & 1]);
    const Batch& batch = batches[b & 1];
    float branch_sums[8] = {};
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      const int column = b * 32 + p * 16;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint2 words = spread(batch.incoming[p][half], odd);
        float dr[2][2], h[2][2], scaled[2][2];
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const float2 incoming = unpack_bf16(u == 0 ? words.x : words.y);
          const float2 r = batch.r[2 * p + u][half];
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            h[u][e] = ((e == 0 ? r.x : r.y) - stats[half].x) * stats[half].y;
            const float g = c[b * 4 + 2 * p + u][2 * half + e];
            dr[u][e] = (e == 0 ? incoming.x : incoming.y) +
                       stats[half].y * (g - mean_g[half] - h[u][e] * mean_gh[half]);
          }
        }
        const bool holds = rows.holds[half] && column < args.columns;
        const std::int64_t at = rows.base[half] + column + pair_column(lane);
        if (given.y != nullptr) {
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const float2 gain = *reinterpret_cast<const float2*>(own + column + u * 8);
            const float2 shift = *reinterpret_cast<const float2*>(own + kWidth + column + u * 8);
            scaled[u][0] = h[u][0] * gain.x + shift.x;
            scaled[u][1] = h[u][1] * gain.y + shift.y;
          }
          put_pair(given.y, at, scaled, odd, holds);
        }
#pragma unroll
        for (int u = 0; u < 2; ++u) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            scaled[u][e] = given.branch_scale * dr[u][e];
            branch_sums[2 * (2 * p + u) + e] += scaled[u][e];
            dr[u][e] *= given.stream_scale;
          }
        }
        if (given.d_branch != nullptr) put_pair(given.d_branch, at, scaled, odd, holds);
        if (given.dx != nullptr) put_pair(given.dx, at, dr, odd, holds);
      }
    }
    if (args.sums == 3) sums[2][b] += column_sums(branch_sums, lane);
  }
}

/// The block's column sums, in a fixed order: tiles, lanes, warps. `rows` f32 [WARPS, 64 NB] is
/// free; `meet` lets the warps that have sums meet.
template <int NB, int WARPS, class Meet>
__device__ __forceinline__ void put_sums(const RowArgs& args, const float (&sums)[3][2 * NB],
                                         float* rows, const Meet& meet) {
  constexpr int kWidth = 64 * NB;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
  for (int q = 0; q < 3; ++q) {
    if (q >= args.sums) break;
    meet();
#pragma unroll
    for (int b = 0; b < 2 * NB; ++b) rows[warp * kWidth + b * 32 + column_of(lane)] = sums[q][b];
    meet();
    for (int c = threadIdx.x; c < args.columns; c += WARPS * 32) {
      float sum = 0;
      for (int w = 0; w < WARPS; ++w) sum += rows[w * kWidth + c];
      args.partial[(std::int64_t{args.sums} * blockIdx.x + q) * args.columns + c] = sum;
    }
  }
}

}  // namespace fathom::engine::cuda::rows
