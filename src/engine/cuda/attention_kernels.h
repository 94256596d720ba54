// Attention on the GPU (definition: engine/ops/attention/attention.h), forward and adjoint.
//
// Two implementations stand behind the three functions: `flash` (bf16, softmax, head sizes that
// are a multiple of 8 up to 128: tensor-core kernels) and `generic` (everything else, f32 math).
// Neither keeps a T x T matrix, allocates, synchronises or adds floats atomically: every sum has a
// fixed order, so equal inputs give equal bits, and the launches can be captured in a graph.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "engine/ops/attention/attention.h"

namespace fathom::engine::cuda {

/// Bytes of `scratch` that the larger of forward and backward needs (256-byte aligned pointer).
std::size_t attention_scratch_bytes(const AttentionShape& shape, bool bf16);

/// qkv [B T, (H + 2 G) K] -> y [B T, H K], stats f32 [B H, T]. qkv and y are f32 or bf16, with
/// pointers aligned to 16 bytes.
void attention_forward(const AttentionShape& shape, const void* qkv, void* y, float* stats,
                       bool bf16, void* scratch, cudaStream_t stream);

/// f32 [(H + 2 G) K] (+)= the column sums of d_qkv; none if `to` is null.
struct ColumnSums {
  float* to = nullptr;
  bool accumulate = false;
};

/// Overwrites all of d_qkv [B T, (H + 2 G) K]. Column sums: only where they are served.
void attention_backward(const AttentionShape& shape, const void* dy, const void* qkv, const void* y,
                        const float* stats, void* d_qkv, bool bf16, void* scratch,
                        cudaStream_t stream, const ColumnSums& sums = {});
bool serves_column_sums(const AttentionShape& shape, bool bf16);

/// Which kernels the flash paths take; -1: chosen by the shape. For benchmarks.
struct AttentionTuning {
  int forward = -1;   // 0: large tiles, 1: small tiles, 2: on warpgroup products
  int backward = -1;  // 0: dq and dkv kernels, 1: the fused kernel (head sizes up to 64)
};
AttentionTuning& attention_tuning();

// The two implementations.
bool flash_serves(const AttentionShape& shape, bool bf16);
std::size_t flash_scratch_bytes(const AttentionShape& shape);
void flash_forward(const AttentionShape& shape, const void* qkv, void* y, float* stats,
                   void* scratch, cudaStream_t stream);
void flash_backward(const AttentionShape& shape, const void* dy, const void* qkv, const void* y,
                    const float* stats, void* d_qkv, void* scratch, cudaStream_t stream,
                    const ColumnSums& sums);
std::size_t generic_scratch_bytes(const AttentionShape& shape, bool bf16);
void generic_forward(const AttentionShape& shape, const void* qkv, void* y, float* stats, bool bf16,
                     void* scratch, cudaStream_t stream);
void generic_backward(const AttentionShape& shape, const void* dy, const void* qkv, const void* y,
                      const float* stats, void* d_qkv, bool bf16, void* scratch,
                      cudaStream_t stream);

/// turns[t, i] = (cos, sin) of t base^(-2i/K) for i < K/2, computed in double.
void launch_rotary_table(const AttentionShape& shape, float2* turns, cudaStream_t stream);

/// The mask as a band: query i sees the keys i - below <= j <= i + above.
struct AttentionBand {
  int above, below;
};
AttentionBand attention_band(const AttentionShape& shape);

}  // namespace fathom::engine::cuda
