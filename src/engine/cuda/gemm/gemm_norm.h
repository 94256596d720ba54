// GEMMs whose tiles hold whole rows, with the norm in their epilogue (Hopper, bf16;
// ops/norm/norm.h has the formulas):
//
//   forward    r = stream_scale x + branch_scale (a b^T + bias),  stats and
//              y = norm(r) gain + shift                           a [M, K], b [D, K]
//   backward   dy = a b, then the backward of the norm: dx and d_branch of the stream, and by part
//              the column sums of dy h, of dy and of d_branch     a [M, K], b [K, D]
//
// The branch and dy are never written to memory. D must be divisible by 16, K by 8; D <= 256
// forward, <= 192 backward. Two forms: a block keeps b in shared memory for good, or streams both
// operands, b shared by a cluster of blocks.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cuda/gpu.h"
#include "engine/plan/device_offers.h"

namespace fathom::engine::cuda {

/// M, D and K above are the shape's rows, width and depth. The name under which its best form is
/// remembered:
std::string key_of(const LinearNormShape& shape);

/// Matrices are bf16 unless stated otherwise; null if absent.
struct GemmNormOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const float* gain = nullptr;  // [D]
  float* stats = nullptr;       // [M, 2], written forward
  float* r = nullptr;           // f32 [M, D], written forward; may be x
  float stream_scale = 1, branch_scale = 1;
  // Forward.
  const float* x = nullptr;      // f32 [M, D]
  const float* shift = nullptr;  // [D], the norm's own bias; may be absent
  const float* bias = nullptr;   // [D], of the GEMM; may be absent
  void* y = nullptr;
  float epsilon = 0;
  // Backward.
  const void* incoming = nullptr;
  void* dx = nullptr;        // may be incoming
  void* d_branch = nullptr;  // may be absent
};

/// How a block divides its work and memory.
struct GemmNormVariant {
  int chunks = 0;   // of 64 rows x 128 bytes, in the ring of each of the two warpgroups
  int cluster = 0;  // blocks that share the streamed b; 0: b is resident
  int stages = 0;   // of the ring of a and b, if they stream

  bool streamed() const { return cluster > 0; }
  std::string name() const;
};

/// The arguments of a kernel.
struct GemmNormArgs {
  CUtensorMap a, b;
  CUtensorMap stream, incoming;    // read: x or r; the gradient of r
  CUtensorMap r, y, dx, d_branch;  // written
  GemmNormOperands given;
  float* partial;
  int rows, columns, tiles, rounds, k_blocks, chunks, cluster, stages, sums;
  bool rms;
};

class GemmNorm {
 public:
  /// The variants that this GPU can run, best guess first; none if it cannot.
  static std::vector<GemmNormVariant> variants(const LinearNormShape& shape, const Gpu& gpu);

  GemmNorm(const LinearNormShape& shape, const GemmNormOperands& operands,
           const GemmNormVariant& variant, const Gpu& gpu);

  /// `partial` is f32 [parts, sums, D], written by the backward.
  int parts() const { return static_cast<int>(blocks_); }
  int sums() const { return args_.sums; }
  void run(float* partial, cudaStream_t stream) const;

 private:
  GemmNormArgs args_{};
  void (*kernel_)(GemmNormArgs) = nullptr;
  unsigned blocks_ = 0, threads_ = 0;
  int bytes_ = 0;
};

}  // namespace fathom::engine::cuda
