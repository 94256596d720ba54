// Many small GEMMs at once in f32, for operands in any layout: rows, columns and batches have
// strides, so a transposed matrix or a few columns of a wide one are read in place.
//
//   C[i, j, k] (+)= sum over e < terms of A_e B_e,   [rows, depth] x [depth, cols]
//
// for every (i, j, k) of the batch, on request without the elements above the diagonal. Sums run in
// a fixed order. No tensor cores: for the minor GEMMs of attention, not for a model's layers.
#pragma once

#include <cstdint>

#include "engine/cuda/operand.h"

namespace fathom::engine::cuda {

struct StridedMatrix {
  Operand x;
  std::int64_t offset = 0;        // of the first element
  std::int64_t row = 0, col = 0;  // strides
  std::int64_t batch[3] = {};     // strides; 0: the matrix is shared
  std::int64_t shared = 1;        // this many neighbours along batch[1] share a matrix
  std::int64_t term = 0;          // stride of e

  StridedMatrix transposed() const {
    StridedMatrix other = *this;
    other.row = col;
    other.col = row;
    return other;
  }
};

enum class Triangle : std::uint8_t { whole, lower, strictly_lower };

struct StridedGemm {
  StridedMatrix a, b, c;
  std::int64_t rows = 0, cols = 0, depth = 0;
  std::int64_t batch[3] = {1, 1, 1};
  std::int64_t terms = 1;
  Triangle triangle = Triangle::whole;  // of C: elements outside become zero
  bool accumulate = false;
};

void strided_gemm(const StridedGemm& gemm, cudaStream_t stream);

}  // namespace fathom::engine::cuda
