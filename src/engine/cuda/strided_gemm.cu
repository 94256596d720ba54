#include "engine/cuda/check.h"
#include "engine/cuda/device.cuh"
#include "engine/cuda/strided_gemm.h"

namespace fathom::engine::cuda {
namespace {

constexpr int kTile = 64, kDepth = 16, kGemmThreads = 256;

struct Place {
  std::int64_t at[3];

  __device__ std::int64_t of(const StridedMatrix& m) const {
    return m.offset + at[0] * m.batch[0] + at[1] / m.shared * m.batch[1] + at[2] * m.batch[2];
  }
};

/// tile[d][r] = m[row0 + r, depth0 + d], zeros outside. Neighbouring threads take neighbours along
/// the shorter stride.
__device__ void load_tile(float (*tile)[kTile + 1], const StridedMatrix& m, std::int64_t first,
                          std::int64_t row0, std::int64_t depth0, std::int64_t row_stride,
                          std::int64_t depth_stride, std::int64_t rows, std::int64_t depth) {
  for (int i = threadIdx.x; i < kTile * kDepth; i += kGemmThreads) {
    const bool by_depth = depth_stride < row_stride;
    const int d = by_depth ? i % kDepth : i / kTile, r = by_depth ? i / kDepth : i % kTile;
    const bool inside = row0 + r < rows && depth0 + d < depth;
    tile[d][r] =
        inside ? load<1>(m.x, first + (row0 + r) * row_stride + (depth0 + d) * depth_stride).v[0]
               : 0.0f;
  }
}

__global__ void __launch_bounds__(kGemmThreads) strided_gemm_kernel(const StridedGemm g) {
  __shared__ float a[kDepth][kTile + 1], b[kDepth][kTile + 1];
  const std::int64_t z = blockIdx.x;
  const Place place{{z / (g.batch[1] * g.batch[2]), z / g.batch[2] % g.batch[1], z % g.batch[2]}};
  const std::int64_t row0 = std::int64_t{blockIdx.y} * kTile,
                     col0 = std::int64_t{blockIdx.z} * kTile;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float sums[4][4] = {};
  for (std::int64_t e = 0; e < g.terms; ++e) {
    const std::int64_t first_a = place.of(g.a) + e * g.a.term,
                       first_b = place.of(g.b) + e * g.b.term;
    for (std::int64_t d0 = 0; d0 < g.depth; d0 += kDepth) {
      __syncthreads();
      load_tile(a, g.a, first_a, row0, d0, g.a.row, g.a.col, g.rows, g.depth);
      load_tile(b, g.b, first_b, col0, d0, g.b.col, g.b.row, g.cols, g.depth);
      __syncthreads();
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        float left[4], right[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) left[r] = a[d][ty + 16 * r];
#pragma unroll
        for (int c = 0; c < 4; ++c) right[c] = b[d][tx + 16 * c];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
#pragma unroll
          for (int c = 0; c < 4; ++c) sums[r][c] = fmaf(left[r], right[c], sums[r][c]);
        }
      }
    }
  }
  const std::int64_t first = place.of(g.c);
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 4; ++c) {
      const std::int64_t row = row0 + ty + 16 * r, col = col0 + tx + 16 * c;
      if (row >= g.rows || col >= g.cols) continue;
      const bool cut = (g.triangle == Triangle::lower && col > row) ||
                       (g.triangle == Triangle::strictly_lower && col >= row);
      put<1>(g.c.x, first + row * g.c.row + col * g.c.col, {cut ? 0.0f : sums[r][c]}, g.accumulate);
    }
  }
}

unsigned tiles_of(std::int64_t size) {
  return static_cast<unsigned>((size + kTile - 1) / kTile);
}

}  // namespace

void strided_gemm(const StridedGemm& gemm, cudaStream_t stream) {
  const auto batch = static_cast<unsigned>(gemm.batch[0] * gemm.batch[1] * gemm.batch[2]);
  const dim3 grid(batch, tiles_of(gemm.rows), tiles_of(gemm.cols));
  strided_gemm_kernel<<<grid, kGemmThreads, 0, stream>>>(gemm);
  check_launch("strided GEMM");
}

}  // namespace fathom::engine::cuda
