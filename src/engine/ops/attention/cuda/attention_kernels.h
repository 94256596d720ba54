// Attention on the GPU (definition: engine/ops/attention/attention.h), forward and backward.
//
// Four implementations: `flash` (tensor-core kernels on mma.m16n8k16 for bf16, softmax without a
// pattern, head sizes that are a multiple of 8 up to 128), `hopper` (the same on wgmma and TMA,
// sm_90a alone), `features` (maps of queries and keys, summed in states: time linear in T) and
// `generic` (everything else, f32 math). None keeps a T x T matrix, allocates, synchronises or adds
// floats atomically: every sum has a fixed order, so equal inputs give equal bits, and the launches
// can be captured in a graph.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "engine/cuda/column_sums.h"
#include "engine/cuda/gpu.h"
#include "engine/ops/attention/attention.h"

namespace fathom::engine::cuda {

enum class AttentionKernel : std::uint8_t { generic, flash, hopper, features };

/// A shape and the kernels that serve it.
struct AttentionConfig {
  AttentionShape shape;
  bool bf16 = false;
  Gpu gpu;
  AttentionKernel forward = AttentionKernel::generic, backward = AttentionKernel::generic;
  bool small_tiles = false;  // of the flash forward
  // AttentionPattern's tables on the device, for a shape that has a pattern.
  const std::uint64_t* visible = nullptr;
  const BlockView* views = nullptr;
  const float* directions = nullptr;  // [K, F] on the device, of random features

  /// Whether the backward also makes the column sums of d_qkv.
  bool sums_columns() const;
};

/// The fastest kernels that serve this shape on this GPU.
AttentionConfig configure_attention(const AttentionShape& shape, bool bf16, const Gpu& gpu);

/// Bytes of `scratch` that the larger of forward and backward needs (256-byte aligned pointer).
std::size_t attention_scratch_bytes(const AttentionConfig& config);

/// qkv [B T, (H + 2 G) K] -> y [B T, H K], stats f32 [B H, T]. qkv and y are f32 or bf16, with
/// pointers aligned to 16 bytes.
void attention_forward(const AttentionConfig& config, const void* qkv, void* y, float* stats,
                       void* scratch, cudaStream_t stream);

/// Overwrites all of d_qkv [B T, (H + 2 G) K]. Column sums only where sums_columns().
void attention_backward(const AttentionConfig& config, const void* dy, const void* qkv,
                        const void* y, const float* stats, void* d_qkv, void* scratch,
                        cudaStream_t stream, const ColumnSums& sums = {});

}  // namespace fathom::engine::cuda
