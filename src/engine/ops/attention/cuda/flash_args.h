// The arguments of the tensor-core attention kernels, and their launchers.
//
// The mask is a band: query i sees the keys i - below <= j <= i + above, j < T.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace fathom::engine::cuda::flash {

using bf16 = __nv_bfloat16;

struct FlashArgs {
  const bf16 *q, *k, *v;  // column 0 of head 0; rotated already if rotary
  const bf16 *dy, *y_in;  // backward only
  bf16* y;
  bf16 *dq, *dk, *dv;
  float* stats;         // [B H, T]
  float *lse2, *delta;  // [B H, T]: stats log2(e) and <dy_i, y_i>, left by an earlier kernel
  float* dq_sums;       // Hopper's backward only: dq so far, in the order of the threads
  float* columns;       // f32 [B, 2 H K]: of dq and dv, only if their column sums are asked for
  std::int64_t qk_stride, v_stride, y_stride, d_stride;  // elements per row
  int batch, context, heads, key_heads, head_size;
  int above, below;
  float scale, scale_log2;
  int tiles;        // row tiles per head
  bool tile_major;  // launch order: all heads of a tile together (longest tiles first), or all
                    // tiles of a head (keys stay in L2)
  int group;        // Hopper's backward only: query heads per key head
  std::int64_t cached_bytes;  // of keys and values that the L2 cache keeps for the next block
};

void launch_forward(const FlashArgs& args, bool small_tiles, cudaStream_t stream);
void launch_backward(const FlashArgs& args, cudaStream_t stream);

// On wgmma and TMA (sm_90a).
void launch_hopper_forward(const FlashArgs& args, cudaStream_t stream);
/// In one kernel of five GEMMs, for head sizes of 8 to 64.
void launch_hopper_backward(const FlashArgs& args, int blocks, cudaStream_t stream);
/// After it: totals[3 H K] (+)= the column sums of d_qkv.
void launch_total_columns(const FlashArgs& args, float* totals, bool add, cudaStream_t stream);

/// While all keys and values stay in the L2 cache, the order of blocks that ends with the short
/// tiles wins.
inline bool keys_stay_cached(const FlashArgs& args, int heads) {
  return 4LL * args.batch * heads * args.context * args.head_size < args.cached_bytes;
}

}  // namespace fathom::engine::cuda::flash
