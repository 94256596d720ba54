// One GEMM by cuBLASLt, planned once:
//
//   C[M, N] (+)= alpha op(A)[M, K] op(B)[K, N] (+ bias[N]),   row-major, op: identity or transpose
//
// Its algorithm is picked by timing the library's suggestions (gemm_library.h). Only algorithms
// whose sums have a fixed order are used (no in-place split-K).
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/plan/tensor.h"

namespace fathom::engine::cuda {

struct GemmSpec {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType input = DType::f32, result = DType::f32;
  bool accumulate = false;
  float alpha = 1;
  bool bias = false;  // in the epilogue, of the result's type

  /// The key under which its algorithm is remembered.
  std::string key() const;
};

struct GemmOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
};

/// Workspaces for GEMMs, one block per stream: GEMMs on one stream use it in turn.
class Workspaces {
 public:
  Workspaces() = default;
  ~Workspaces();
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

  void add(cudaStream_t stream) { blocks_[stream] = nullptr; }
  /// Resets all blocks; nothing may be running.
  void resize(std::size_t bytes);
  void* of(cudaStream_t stream) const { return blocks_.at(stream); }
  std::size_t bytes() const { return bytes_; }  // of one block
  std::int64_t total() const { return static_cast<std::int64_t>(blocks_.size() * bytes_); }

 private:
  std::map<cudaStream_t, void*> blocks_;
  std::size_t bytes_ = 0;
};

class Gemm {
 public:
  using Algorithm = cublasLtMatmulAlgo_t;

  Gemm(cublasLtHandle_t handle, const GemmSpec& spec, const Workspaces& workspaces);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  /// The library's suggestions, best guess first; none where it has no such GEMM.
  std::vector<Algorithm> suggest(const GemmOperands& operands, int wanted) const;
  void choose(const Algorithm& algorithm) { algorithm_ = algorithm; }
  const Algorithm& algorithm() const { return algorithm_; }
  /// Bytes of workspace that the chosen algorithm needs.
  std::size_t workspace_needed(std::size_t otherwise) const;

  /// False when the library refuses.
  bool try_run(const GemmOperands& operands, cudaStream_t stream, const Algorithm& algorithm);
  /// Throws DeviceError when the library refuses.
  void run(const GemmOperands& operands, cudaStream_t stream);

 private:
  cublasStatus_t launch(const GemmOperands& operands, cudaStream_t stream,
                        const Algorithm& algorithm);

  cublasLtHandle_t handle_;
  GemmSpec spec_;
  const Workspaces& workspaces_;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  Algorithm algorithm_{};
};

}  // namespace fathom::engine::cuda
