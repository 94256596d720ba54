// Which kernels serve a shape.
#include "engine/ops/attention/cuda/attention_kernels.h"

#include <algorithm>

#include "engine/ops/attention/cuda/implementations.h"

namespace fathom::engine::cuda {
namespace {

constexpr int kNoLimit = 1 << 28;

bool flash_serves(const AttentionShape& s, bool bf16) {
  return bf16 && s.kind == AttentionKind::softmax && s.head_size % 8 == 0 && s.head_size <= 128 &&
         !s.has_pattern() && s.scale > 0;  // the running maximum is one of the unscaled scores
}

}  // namespace

AttentionBand attention_band(const AttentionShape& s) {
  AttentionBand band{kNoLimit, kNoLimit};
  if (s.mask == MaskKind::causal) band.above = 0;
  if (s.mask == MaskKind::strict) band.above = -1;
  if (s.window > 0 && s.window < kNoLimit && !s.has_pattern()) {
    band.below = static_cast<int>(s.window) - 1;
    band.above = std::min(band.above, band.below);
  }
  return band;
}

AttentionConfig configure_attention(const AttentionShape& s, bool bf16, const Gpu& gpu) {
  AttentionConfig config{.shape = s, .bf16 = bf16, .gpu = gpu};
  if (s.sums_states()) config.forward = config.backward = AttentionKernel::features;
  if (!flash_serves(s, bf16)) return config;
  config.forward = config.backward = AttentionKernel::flash;
  config.small_tiles = s.context <= 512;
  // The Hopper forward wins wherever it was measured (contexts 256 and 1024), the backward as soon
  // as its blocks, one for each sequence and key head, fill the GPU.
  if (gpu.hopper && s.context > 128) config.forward = AttentionKernel::hopper;
  if (gpu.hopper && s.head_size > 16 && s.head_size <= 64 && s.context > 64 &&
      2 * s.batch * s.key_heads >= gpu.multiprocessors) {
    config.backward = AttentionKernel::hopper;
  }
  return config;
}

bool AttentionConfig::sums_columns() const {
  // Rotary dq and dk are rotated back after the kernel has summed them; for shared keys it is not
  // worth it.
  return backward == AttentionKernel::hopper && shape.rotary_base <= 0 &&
         shape.heads == shape.key_heads;
}

std::size_t attention_scratch_bytes(const AttentionConfig& config) {
  if (config.forward == AttentionKernel::features) return feature_scratch_bytes(config);
  return config.forward == AttentionKernel::generic ? generic_scratch_bytes(config)
                                                    : flash_scratch_bytes(config);
}

void attention_forward(const AttentionConfig& config, const void* qkv, void* y, float* stats,
                       void* scratch, cudaStream_t stream) {
  if (config.forward == AttentionKernel::features) {
    return feature_forward(config, qkv, y, stats, scratch, stream);
  }
  if (config.forward == AttentionKernel::generic) {
    return generic_forward(config, qkv, y, stats, scratch, stream);
  }
  flash_forward(config, qkv, y, stats, scratch, stream);
}

void attention_backward(const AttentionConfig& config, const void* dy, const void* qkv,
                        const void* y, const float* stats, void* d_qkv, void* scratch,
                        cudaStream_t stream, const ColumnSums& sums) {
  if (config.backward == AttentionKernel::features) {
    return feature_backward(config, dy, qkv, y, stats, d_qkv, scratch, stream);
  }
  if (config.backward == AttentionKernel::generic) {
    return generic_backward(config, dy, qkv, y, stats, d_qkv, scratch, stream);
  }
  flash_backward(config, dy, qkv, y, stats, d_qkv, scratch, stream, sums);
}

}  // namespace fathom::engine::cuda
