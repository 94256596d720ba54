// One GEMM of fixed size by oneDNN; its primitive is created once.
//
//   C[M, N] (+)= op(A)[M, K] op(B)[K, N] (+ bias[N]),   row-major, op is identity or transpose
#pragma once

#include <dnnl.hpp>

#include "engine/plan/tensor.h"

namespace fathom::engine::cpu {

struct MatmulSpec {
  std::int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  DType input = DType::f32, result = DType::f32;
  bool bias = false, accumulate = false;
};

class Matmul {
 public:
  Matmul(const dnnl::engine& engine, const MatmulSpec& spec);
  void run(dnnl::stream& stream, const void* a, const void* b, void* c,
           const float* bias = nullptr);

 private:
  dnnl::matmul primitive_;
  dnnl::memory a_, b_, c_, bias_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace fathom::engine::cpu
