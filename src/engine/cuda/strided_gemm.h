// Many small GEMMs at once in f32, for operands that lie anywhere: rows, columns and batches have
// strides, so a transposed matrix or a few columns of a wide one are read where they are.
//
//   C[i, j, k] (+)= sum over e < terms of A_e B_e,   [rows, depth] x [depth, cols]
//
// for every (i, j, k) of the batch, the elements above the diagonal left out when asked. Sums run
// in a fixed order. No tensor cores: for the side works of attention, not for a model's layers.
#pragma once

#include <cstdint>

#include "engine/cuda/operand.h"

namespace fathom::engine::cuda {

struct StridedMatrix {
  Operand x;
  std::int64_t offset = 0;        // of the first element
  std::int64_t row = 0, col = 0;  // strides
  std::int64_t batch[3] = {};     // strides; 0: the matrix is shared
  std::int64_t shared = 1;        // so many neighbours of batch[1] have one matrix
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
