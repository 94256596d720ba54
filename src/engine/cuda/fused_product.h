// Products of the feed-forward that do the activation's work on the way to memory (Hopper, bf16):
//
//   forward    pre = a b^T,  out = f(pre + bias)          a [M, K], b [N, K] (x and W of `up`)
//   backward   out = (a b) f'(pre + bias)                 a [M, K], b [K, N] (dy and W of `down`),
//              and the column sums of out by part
//
// One pass over memory instead of two or three. N and K must be divisible by 8. Two forms: a block
// keeps its columns of b in shared memory for good (K <= 512), or streams both operands.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ops/activation.h"

namespace fathom::engine::cuda {

struct FusedSpec {
  std::int64_t m = 0, n = 0, k = 0;
  ActivationKind kind = ActivationKind::gelu;
  bool backward = false;

  std::string name() const;
};

struct FusedOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const float* bias = nullptr;  // or none
  void* pre = nullptr;
  void* out = nullptr;
};

/// How a block shares out its work and memory: warpgroups, tiles of results in work for each,
/// tiles of `a` on their way for each.
struct FusedVariant {
  int groups = 2, buffers = 2, stages = 4;
  bool streamed = false;

  std::string name() const;
};

/// What a kernel is given.
struct FusedArgs {
  CUtensorMap a, b, pre, out;
  const float* bias;
  float* partial;
  int tiles, columns, column_tiles, k_blocks, stages, buffers;
};

class FusedProduct {
 public:
  /// The ways in which this GPU can do it, best guess first; none if it cannot.
  static std::vector<FusedVariant> variants(const FusedSpec& spec);

  FusedProduct(const FusedSpec& spec, const FusedOperands& operands, const FusedVariant& variant,
               int multiprocessors);

  /// Rows of `partial`, which is f32 [parts, N].
  int parts() const { return parts_; }
  /// `partial` is for the way back only.
  void run(float* partial, cudaStream_t stream) const;

 private:
  FusedArgs args_{};
  void (*kernel_)(FusedArgs) = nullptr;
  int parts_ = 0, threads_ = 0, bytes_ = 0;
};

}  // namespace fathom::engine::cuda
