// Launchers of the elementwise and row-wise kernels of a forward pass (engine/cuda/inference.h says
// what each computes).
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "engine/cuda/inference.h"

namespace fathom::engine::cuda {

/// A value is the sum of three bf16 parts, except for what lies below the range of bf16.
inline constexpr int kMostParts = 3;

/// Part p of x at parts + p * count; `parts_wanted` of them.
void launch_split(const float* x, std::int64_t count, int parts_wanted, __nv_bfloat16* parts,
                  cudaStream_t stream);
/// Raises *needed to the number of parts that all of x together need.
void launch_count_parts(const float* x, std::int64_t count, int* needed, cudaStream_t stream);

void launch_norm(const NormShape& shape, const float* x, const float* gain, const float* bias,
                 float* y, cudaStream_t stream);
void launch_rotate(const SequenceShape& shape, std::int64_t half, const float* cosines,
                   const float* sines, float* qkv, cudaStream_t stream);
void launch_activate(const float* u, std::int64_t rows, std::int64_t ffn, RowActivation kind,
                     bool gated, float* y, cudaStream_t stream);
void launch_add_scaled(float* x, const float* y, std::int64_t count, float scale,
                       cudaStream_t stream);
void launch_add_bias(float* x, std::int64_t rows, std::int64_t size, const float* bias,
                     cudaStream_t stream);
void launch_set_columns(std::int64_t rows, std::int64_t stride, std::int64_t begin,
                        std::int64_t size, const float* values, float* x, cudaStream_t stream);
void launch_scale_and_cap(float* x, std::int64_t count, float scale, float cap,
                          cudaStream_t stream);
void launch_losses(const float* logits, std::int64_t rows, std::int64_t vocab,
                   const std::int32_t* targets, float* out, cudaStream_t stream);

/// Largest head that `launch_attention` supports.
inline constexpr std::int64_t kMostHeadSize = 256;
void launch_attention(const SequenceShape& shape, const float* qkv, float* out,
                      cudaStream_t stream);
void launch_attention_weights(const SequenceShape& shape, std::int64_t head, const float* qkv,
                              float* weights, cudaStream_t stream);

}  // namespace fathom::engine::cuda
