// The implementations behind attention_kernels.h.
#pragma once

#include <cuda_runtime_api.h>
#include <vector_types.h>

#include "engine/ops/attention/cuda/attention_kernels.h"

namespace fathom::engine::cuda {

std::size_t flash_scratch_bytes(const AttentionConfig& config);
void flash_forward(const AttentionConfig& config, const void* qkv, void* y, float* stats,
                   void* scratch, cudaStream_t stream);
void flash_backward(const AttentionConfig& config, const void* dy, const void* qkv, const void* y,
                    const float* stats, void* d_qkv, void* scratch, cudaStream_t stream,
                    const ColumnSums& sums);

std::size_t generic_scratch_bytes(const AttentionConfig& config);
void generic_forward(const AttentionConfig& config, const void* qkv, void* y, float* stats,
                     void* scratch, cudaStream_t stream);
void generic_backward(const AttentionConfig& config, const void* dy, const void* qkv, const void* y,
                      const float* stats, void* d_qkv, void* scratch, cudaStream_t stream);

std::size_t feature_scratch_bytes(const AttentionConfig& config);
void feature_forward(const AttentionConfig& config, const void* qkv, void* y, float* stats,
                     void* scratch, cudaStream_t stream);
void feature_backward(const AttentionConfig& config, const void* dy, const void* qkv, const void* y,
                      const float* stats, void* d_qkv, void* scratch, cudaStream_t stream);

/// rotations[t, i] = (cos, sin) of t base^(-2i/K) for i < K/2, computed in double.
void launch_rotary_table(const AttentionShape& shape, float2* rotations, cudaStream_t stream);

/// The mask as a band: query i sees the keys i - below <= j <= i + above, or with a pattern some of
/// them.
struct AttentionBand {
  int above, below;
};
AttentionBand attention_band(const AttentionShape& shape);

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

}  // namespace fathom::engine::cuda
