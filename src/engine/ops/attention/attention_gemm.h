// The GEMM of f32 attention kernels. Only for ops/attention*_simd.cpp.
#pragma once

#include "engine/ops/attention/attention_blocks.h"

namespace fathom::engine::cpu::FATHOM_ISA {

template <int kRows, int kVecs>
static inline void tile(std::int64_t k_begin, std::int64_t k_end, const float* a,
                        std::int64_t a_row, std::int64_t a_depth, const float* b,
                        std::int64_t b_row, float* c, std::int64_t c_row, bool accumulate) {
  Vec sums[kRows][kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) {
      sums[i][j] = accumulate ? load(c + i * c_row + j * kLanes) : Vec{};
    }
  }
  for (std::int64_t k = k_begin; k < k_end; ++k) {
    Vec right[kVecs];
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) right[j] = load(b + k * b_row + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Vec left = splat(a[i * a_row + k * a_depth]);
#pragma GCC unroll 16
      for (int j = 0; j < kVecs; ++j) sums[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) store(c + i * c_row + j * kLanes, sums[i][j]);
  }
}

inline constexpr int kTileRows = kLanes == 16 ? 8 : 4;

/// C[rows, columns] (+)= A[rows, depth] B[depth, columns]; A by its two strides, rows a multiple of
/// kTileRows, columns one of kLanes.
static inline void gemm(std::int64_t rows, std::int64_t columns, std::int64_t depth, const float* a,
                        std::int64_t a_row, std::int64_t a_depth, const float* b,
                        std::int64_t b_row, float* c, std::int64_t c_row, bool accumulate,
                        Part part = Part::whole) {
  for (std::int64_t i = 0; i < rows; i += kTileRows) {
    const std::int64_t edge = i + kTileRows;
    const std::int64_t k_begin = part == Part::depth_from_row ? i : 0;
    const std::int64_t k_end = part == Part::depth_upto_row && edge < depth ? edge : depth;
    const std::int64_t last = part == Part::columns_upto_row && edge < columns ? edge : columns;
    std::int64_t j = 0;
    for (; j + kLanes < last; j += 2 * kLanes) {
      tile<kTileRows, 2>(k_begin, k_end, a + i * a_row, a_row, a_depth, b + j, b_row,
                         c + i * c_row + j, c_row, accumulate);
    }
    if (j < last) {
      tile<kTileRows, 1>(k_begin, k_end, a + i * a_row, a_row, a_depth, b + j, b_row,
                         c + i * c_row + j, c_row, accumulate);
    }
  }
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
