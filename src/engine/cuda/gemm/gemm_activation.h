// GEMMs of the feed-forward with the activation in their epilogue (Hopper, bf16):
//
//   forward    out = f(a b^T + bias), slopes = f'(the same)   a [M, K], b [N, K] (x and W of `up`)
//   backward   out = (a b) slopes                             a [M, K], b [K, N] (dy and W of
//              `down`), and the column sums of out by part
//
// Slopes are coded in bytes (ops/activation/activation.h) and stored as the kernels hold them: each
// tile of 64 rows x 128 columns takes 8 KiB, [4 packs, 128 threads, 16 bytes]; thread t has rows
// t/32*16 + t%32/4 and 8 further, columns t%4*2 and the next of each 8; a pack is four such 8s, in
// each the first row's two columns before the second's. Any forward form works with any backward
// form.
//
// M must be divisible by 64, N by 128, K by 8. Two forms: a block keeps its columns of b in shared
// memory for good (K <= 512), or streams both operands.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cuda/gpu.h"
#include "engine/ops/activation/activation.h"

namespace fathom::engine::cuda {

struct GemmActivationSpec {
  std::int64_t m = 0, n = 0, k = 0;
  ActivationKind kind = ActivationKind::gelu;
  bool backward = false;

  std::string name() const;
};

struct GemmActivationOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const float* bias = nullptr;  // forward, optional
  void* slopes = nullptr;       // u8 [M, N]; forward, optional
  void* out = nullptr;
};

/// How a block divides its work and memory: warpgroups that multiply, and for each of them slots
/// for results and stages of operands.
struct GemmActivationVariant {
  int groups = 2, slots = 2, stages = 4;
  bool streamed = false;

  std::string name() const;
};

/// The arguments of a kernel.
struct GemmActivationArgs {
  CUtensorMap a, b, out;
  const float* bias;
  uint4* slopes;
  float* partial;
  int tiles, columns, column_tiles, k_blocks, stages, slots;
};

class GemmActivation {
 public:
  /// The variants that this GPU can run, best guess first; none if it cannot.
  static std::vector<GemmActivationVariant> variants(const GemmActivationSpec& spec,
                                                     const Gpu& gpu);

  GemmActivation(const GemmActivationSpec& spec, const GemmActivationOperands& operands,
                 const GemmActivationVariant& variant, const Gpu& gpu);

  /// Rows of `partial`, which is f32 [parts, N].
  int parts() const { return parts_; }
  /// `partial` is for the backward only.
  void run(float* partial, cudaStream_t stream) const;

 private:
  GemmActivationArgs args_{};
  void (*kernel_)(GemmActivationArgs) = nullptr;
  int parts_ = 0, threads_ = 0, bytes_ = 0;
};

}  // namespace fathom::engine::cuda
