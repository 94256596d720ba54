// What the tensor-core attention kernels need around them.
//
// Rotary positions: q and k are rotated into scratch, (x_i, x_{i+K/2}) by the angle of their row,
// before the kernels run, and dq, dk are rotated back in place after them; shapes without rotary
// positions read qkv in place. Scratch: lse2, delta f32 [B H, T] each (for Hopper's backward
// T rounded up, and side by side for every 128 rows), then for rotary shapes the table of rotations
// [T, K/2] and the rotated heads bf16 [B T, (H + G) K], then for Hopper's backward f32 sums of dq,
// [H/G, T, K] with T and K rounded up for each of its blocks: small enough to stay in the L2 cache,
// since a block uses them again for every sequence; then column sums f32 [B, 2 H K] where they are
// made.
#include <algorithm>

#include "core/error.h"
#include "engine/cuda/device.cuh"
#include "engine/ops/attention/cuda/flash_tiles.cuh"
#include "engine/ops/attention/cuda/implementations.h"

namespace fathom::engine::cuda {
namespace {

struct FlashScratch {
  float *lse2, *delta;
  float2* rotations;
  bf16* rotated;
  float *dq_sums, *columns;
  std::size_t bytes;
};

/// Blocks of Hopper's backward: one for each multiprocessor, if there is work for all.
int hopper_blocks(const AttentionConfig& config) {
  return static_cast<int>(std::min<std::int64_t>(config.shape.batch * config.shape.key_heads,
                                                 config.gpu.multiprocessors));
}

std::size_t dq_sums_bytes(const AttentionConfig& config) {
  const AttentionShape& s = config.shape;
  if (config.backward != AttentionKernel::hopper) return 0;
  const std::int64_t rows = (s.context + 127) / 128 * 128, columns = s.head_size <= 32 ? 32 : 64;
  return static_cast<std::size_t>(hopper_blocks(config) * (s.heads / s.key_heads) * rows *
                                  columns) *
         sizeof(float);
}

std::size_t columns_bytes(const AttentionConfig& config) {
  const AttentionShape& s = config.shape;
  if (!config.sums_columns()) return 0;
  return static_cast<std::size_t>(s.batch * 2 * s.heads * s.head_size) * sizeof(float);
}

FlashScratch cut(const AttentionConfig& config, void* scratch) {
  const AttentionShape& s = config.shape;
  const auto rows = static_cast<std::size_t>(s.batch * s.context);
  const std::int64_t context =
      config.backward == AttentionKernel::hopper ? (s.context + 127) / 128 * 128 : s.context;
  const std::size_t numbers =
      aligned(static_cast<std::size_t>(s.batch * s.heads * context) * sizeof(float));
  const bool rotary = s.rotary_base > 0;
  const std::size_t table =
      rotary ? aligned(static_cast<std::size_t>(s.context * s.head_size / 2) * sizeof(float2)) : 0;
  const std::size_t heads =
      rotary ? aligned(rows * static_cast<std::size_t>((s.heads + s.key_heads) * s.head_size) *
                       sizeof(bf16))
             : 0;
  auto* base = static_cast<unsigned char*>(scratch);
  FlashScratch out{};
  const std::size_t dq_sums = aligned(dq_sums_bytes(config));
  out.bytes = 2 * numbers + table + heads + dq_sums + columns_bytes(config);
  if (base == nullptr) return out;
  out.lse2 = reinterpret_cast<float*>(base);
  out.delta = reinterpret_cast<float*>(base + numbers);
  out.rotations = reinterpret_cast<float2*>(base + 2 * numbers);
  out.rotated = reinterpret_cast<bf16*>(base + 2 * numbers + table);
  out.dq_sums = reinterpret_cast<float*>(base + 2 * numbers + table + heads);
  out.columns = reinterpret_cast<float*>(base + 2 * numbers + table + heads + dq_sums);
  return out;
}

/// Rotates the first `heads` heads of every row; a thread does 4 pairs. from == to is allowed.
__global__ void rotate_kernel(const bf16* from, bf16* to, const float2* rotations,
                              std::int64_t from_stride, std::int64_t to_stride, std::int64_t items,
                              int context, int heads, int head_size, float direction) {
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= items) return;
  const int half = head_size / 2, parts = half / 4;
  const int part = static_cast<int>(item % parts);
  const int head = static_cast<int>(item / parts % heads);
  const std::int64_t row = item / parts / heads;
  const float2* rotation = rotations + (row % context) * half + part * 4;
  const std::int64_t column = static_cast<std::int64_t>(head) * head_size + part * 4;
  const bf16* x = from + row * from_stride + column;
  bf16* out = to + row * to_stride + column;
  const uint2 low = *reinterpret_cast<const uint2*>(x);
  const uint2 high = *reinterpret_cast<const uint2*>(x + half);
  uint2 new_low, new_high;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float2 a = unpack_bf16(i == 0 ? low.x : low.y);
    const float2 b = unpack_bf16(i == 0 ? high.x : high.y);
    const float2 t0 = rotation[2 * i], t1 = rotation[2 * i + 1];
    const float s0 = direction * t0.y, s1 = direction * t1.y;
    const std::uint32_t l = pack(a.x * t0.x - b.x * s0, a.y * t1.x - b.y * s1);
    const std::uint32_t h = pack(a.x * s0 + b.x * t0.x, a.y * s1 + b.y * t1.x);
    (i == 0 ? new_low.x : new_low.y) = l;
    (i == 0 ? new_high.x : new_high.y) = h;
  }
  *reinterpret_cast<uint2*>(out) = new_low;
  *reinterpret_cast<uint2*>(out + half) = new_high;
}

void rotate(const AttentionShape& s, const bf16* from, std::int64_t from_stride, bf16* to,
            std::int64_t to_stride, const float2* rotations, float direction, cudaStream_t stream) {
  const std::int64_t heads = s.heads + s.key_heads;
  const std::int64_t items = s.batch * s.context * heads * (s.head_size / 8);
  const auto blocks = static_cast<unsigned>((items + 255) / 256);
  rotate_kernel<<<blocks, 256, 0, stream>>>(from, to, rotations, from_stride, to_stride, items,
                                            static_cast<int>(s.context), static_cast<int>(heads),
                                            static_cast<int>(s.head_size), direction);
  if (cudaGetLastError() != cudaSuccess) {
    throw DeviceError("attention: rotary positions could not be applied");
  }
}

/// What both directions share; rotates q and k into scratch if rotary.
flash::FlashArgs prepare(const AttentionConfig& config, const bf16* qkv,
                         const FlashScratch& scratch, cudaStream_t stream) {
  const AttentionShape& s = config.shape;
  flash::FlashArgs args{};
  args.q = qkv;
  args.k = qkv + s.heads * s.head_size;
  args.v = qkv + (s.heads + s.key_heads) * s.head_size;
  args.qk_stride = args.v_stride = args.d_stride = s.qkv_cols();
  args.y_stride = s.heads * s.head_size;
  if (s.rotary_base > 0) {
    args.qk_stride = (s.heads + s.key_heads) * s.head_size;
    launch_rotary_table(s, scratch.rotations, stream);
    rotate(s, qkv, s.qkv_cols(), scratch.rotated, args.qk_stride, scratch.rotations, 1, stream);
    args.q = scratch.rotated;
    args.k = scratch.rotated + s.heads * s.head_size;
  }
  args.lse2 = scratch.lse2;
  args.delta = scratch.delta;
  args.batch = static_cast<int>(s.batch);
  args.context = static_cast<int>(s.context);
  args.heads = static_cast<int>(s.heads);
  args.key_heads = static_cast<int>(s.key_heads);
  args.head_size = static_cast<int>(s.head_size);
  const AttentionBand band = attention_band(s);
  args.above = band.above;
  args.below = band.below;
  args.scale = s.scale;
  args.scale_log2 = s.scale * 1.4426950408889634f;
  // Measured on an H200, whose L2 holds 50 MB; elsewhere half of the L2.
  args.cached_bytes = std::min<std::int64_t>(24 << 20, config.gpu.l2_bytes / 2);
  return args;
}

}  // namespace

std::size_t flash_scratch_bytes(const AttentionConfig& config) {
  return cut(config, nullptr).bytes;
}

void flash_forward(const AttentionConfig& config, const void* qkv, void* y, float* stats,
                   void* scratch, cudaStream_t stream) {
  flash::FlashArgs args =
      prepare(config, static_cast<const bf16*>(qkv), cut(config, scratch), stream);
  args.y = static_cast<bf16*>(y);
  args.stats = stats;
  if (config.forward == AttentionKernel::hopper) return flash::launch_hopper_forward(args, stream);
  flash::launch_forward(args, config.small_tiles, stream);
}

void flash_backward(const AttentionConfig& config, const void* dy, const void* qkv, const void* y,
                    const float* stats, void* d_qkv, void* scratch, cudaStream_t stream,
                    const ColumnSums& sums) {
  const AttentionShape& s = config.shape;
  const FlashScratch parts = cut(config, scratch);
  flash::FlashArgs args = prepare(config, static_cast<const bf16*>(qkv), parts, stream);
  args.dy = static_cast<const bf16*>(dy);
  args.y_in = static_cast<const bf16*>(y);
  args.stats = const_cast<float*>(stats);  // only the forward kernel writes through it
  args.dq = static_cast<bf16*>(d_qkv);
  args.dk = args.dq + s.heads * s.head_size;
  args.dv = args.dk + s.key_heads * s.head_size;
  args.dq_sums = parts.dq_sums;
  if (config.backward == AttentionKernel::hopper) {
    if (sums.to != nullptr) args.columns = parts.columns;
    flash::launch_hopper_backward(args, hopper_blocks(config), stream);
    if (sums.to != nullptr) {
      flash::launch_total_columns(args, sums.to, sums.accumulate, stream);
    }
  } else {
    flash::launch_backward(args, stream);
  }
  if (s.rotary_base > 0) {
    rotate(s, args.dq, args.d_stride, args.dq, args.d_stride, parts.rotations, -1, stream);
  }
}

}  // namespace fathom::engine::cuda
