// The entry points of attention on the GPU: which implementation serves a shape, and what the
// tensor-core kernels need around them.
//
// Rotary positions: q and k are turned into scratch, (x_i, x_{i+K/2}) by the angle of their row,
// before the kernels run, and dq, dk are turned back in place after them; shapes without rotary
// positions read qkv where it lies. Scratch: lse2, delta f32 [B H, T] each (for the fused adjoint
// T rounded up, and side by side for every 128 rows), then for rotary shapes
// the table of turns [T, K/2] and the turned heads bf16 [B T, (H + G) K], then for the fused
// adjoint f32 sums of dq, [H/G, T, K] with T and K rounded up for each of its blocks: small enough
// to stay in the L2 cache, since a block uses them again for every sequence; then column sums
// f32 [B, 2 H K] where they are served.
#include <algorithm>

#include "core/error.h"
#include "engine/cuda/attention_flash.cuh"
#include "engine/cuda/attention_kernels.h"

namespace fathom::engine::cuda {
namespace {

using flash::bf16;

constexpr int kNoLimit = 1 << 28;

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

struct FlashScratch {
  float *lse2, *delta;
  float2* turns;
  bf16* turned;
  float *dq_sums, *columns;
  std::size_t bytes;
};

/// Warpgroup products exist on Hopper alone (compute capability 9.0).
bool has_warpgroup_products() {
  int device = 0, major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  return major == 9;
}

/// The fused adjoint wins as soon as its blocks, one a sequence and key head, fill the GPU.
bool takes_fused(const AttentionShape& s) {
  if (s.head_size > 64 || !has_warpgroup_products()) return false;
  const int chosen = attention_tuning().backward;
  if (chosen >= 0) return chosen == 1;
  return s.head_size > 16 && s.context > 64 && 2 * s.batch * s.key_heads >= flash::kFusedBlocks;
}

/// The forward kernel on warpgroup products wins wherever it was measured (contexts 256 and 1024).
bool takes_forward_groups(const AttentionShape& s) {
  if (!has_warpgroup_products()) return false;
  const int chosen = attention_tuning().forward;
  return chosen >= 0 ? chosen >= 2 : s.context > 128;
}

std::size_t dq_sums_bytes(const AttentionShape& s) {
  if (!takes_fused(s)) return 0;
  const std::int64_t blocks = std::min<std::int64_t>(s.batch * s.key_heads, flash::kFusedBlocks);
  const std::int64_t rows = (s.context + 127) / 128 * 128, columns = s.head_size <= 32 ? 32 : 64;
  return static_cast<std::size_t>(blocks * (s.heads / s.key_heads) * rows * columns) *
         sizeof(float);
}

/// Rotary dq and dk are turned back after the kernel has summed them; shared keys are not worth it.
bool sums_columns(const AttentionShape& s) {
  return takes_fused(s) && s.rotary_base <= 0 && s.heads == s.key_heads;
}

std::size_t columns_bytes(const AttentionShape& s) {
  return sums_columns(s)
             ? static_cast<std::size_t>(s.batch * 2 * s.heads * s.head_size) * sizeof(float)
             : 0;
}

FlashScratch cut(const AttentionShape& s, void* scratch) {
  const auto rows = static_cast<std::size_t>(s.batch * s.context);
  const std::int64_t context = takes_fused(s) ? (s.context + 127) / 128 * 128 : s.context;
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
  const std::size_t dq_sums = aligned(dq_sums_bytes(s));
  out.bytes = 2 * numbers + table + heads + dq_sums + columns_bytes(s);
  if (base == nullptr) return out;
  out.lse2 = reinterpret_cast<float*>(base);
  out.delta = reinterpret_cast<float*>(base + numbers);
  out.turns = reinterpret_cast<float2*>(base + 2 * numbers);
  out.turned = reinterpret_cast<bf16*>(base + 2 * numbers + table);
  out.dq_sums = reinterpret_cast<float*>(base + 2 * numbers + table + heads);
  out.columns = reinterpret_cast<float*>(base + 2 * numbers + table + heads + dq_sums);
  return out;
}

/// Turns the first `heads` heads of every row; a thread does 4 pairs. from == to is allowed.
__global__ void turn_kernel(const bf16* from, bf16* to, const float2* turns,
                            std::int64_t from_stride, std::int64_t to_stride, std::int64_t items,
                            int context, int heads, int head_size, float direction) {
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= items) return;
  const int half = head_size / 2, parts = half / 4;
  const int part = static_cast<int>(item % parts);
  const int head = static_cast<int>(item / parts % heads);
  const std::int64_t row = item / parts / heads;
  const float2* turn = turns + (row % context) * half + part * 4;
  const std::int64_t column = static_cast<std::int64_t>(head) * head_size + part * 4;
  const bf16* x = from + row * from_stride + column;
  bf16* out = to + row * to_stride + column;
  const uint2 low = *reinterpret_cast<const uint2*>(x);
  const uint2 high = *reinterpret_cast<const uint2*>(x + half);
  uint2 new_low, new_high;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float2 a = flash::unpack(i == 0 ? low.x : low.y);
    const float2 b = flash::unpack(i == 0 ? high.x : high.y);
    const float2 t0 = turn[2 * i], t1 = turn[2 * i + 1];
    const float s0 = direction * t0.y, s1 = direction * t1.y;
    const std::uint32_t l = flash::pack(a.x * t0.x - b.x * s0, a.y * t1.x - b.y * s1);
    const std::uint32_t h = flash::pack(a.x * s0 + b.x * t0.x, a.y * s1 + b.y * t1.x);
    (i == 0 ? new_low.x : new_low.y) = l;
    (i == 0 ? new_high.x : new_high.y) = h;
  }
  *reinterpret_cast<uint2*>(out) = new_low;
  *reinterpret_cast<uint2*>(out + half) = new_high;
}

void turn(const AttentionShape& s, const bf16* from, std::int64_t from_stride, bf16* to,
          std::int64_t to_stride, const float2* turns, float direction, cudaStream_t stream) {
  const std::int64_t heads = s.heads + s.key_heads;
  const std::int64_t items = s.batch * s.context * heads * (s.head_size / 8);
  const auto blocks = static_cast<unsigned>((items + 255) / 256);
  turn_kernel<<<blocks, 256, 0, stream>>>(from, to, turns, from_stride, to_stride, items,
                                          static_cast<int>(s.context), static_cast<int>(heads),
                                          static_cast<int>(s.head_size), direction);
  if (cudaGetLastError() != cudaSuccess) {
    throw DeviceError("attention: rotary positions could not be applied");
  }
}

/// What both directions share; turns q and k into scratch if rotary.
flash::FlashArgs prepare(const AttentionShape& s, const bf16* qkv, const FlashScratch& scratch,
                         cudaStream_t stream) {
  flash::FlashArgs args{};
  args.q = qkv;
  args.k = qkv + s.heads * s.head_size;
  args.v = qkv + (s.heads + s.key_heads) * s.head_size;
  args.qk_stride = args.v_stride = args.d_stride = s.qkv_cols();
  args.y_stride = s.heads * s.head_size;
  if (s.rotary_base > 0) {
    args.qk_stride = (s.heads + s.key_heads) * s.head_size;
    launch_rotary_table(s, scratch.turns, stream);
    turn(s, qkv, s.qkv_cols(), scratch.turned, args.qk_stride, scratch.turns, 1, stream);
    args.q = scratch.turned;
    args.k = scratch.turned + s.heads * s.head_size;
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
  return args;
}

}  // namespace

AttentionTuning& attention_tuning() {
  static AttentionTuning tuning;
  return tuning;
}

AttentionBand attention_band(const AttentionShape& s) {
  AttentionBand band{kNoLimit, kNoLimit};
  if (s.mask == MaskKind::causal) band.above = 0;
  if (s.mask == MaskKind::strict) band.above = -1;
  if (s.window > 0 && s.window < kNoLimit) {
    band.below = static_cast<int>(s.window) - 1;
    band.above = std::min(band.above, band.below);
  }
  return band;
}

bool flash_serves(const AttentionShape& s, bool bf16) {
  return bf16 && s.kind == AttentionKind::softmax && s.head_size % 8 == 0 && s.head_size <= 128 &&
         s.scale > 0;  // the running maximum is one of the unscaled scores
}

std::size_t flash_scratch_bytes(const AttentionShape& s) {
  return cut(s, nullptr).bytes;
}

void flash_forward(const AttentionShape& s, const void* qkv, void* y, float* stats, void* scratch,
                   cudaStream_t stream) {
  flash::FlashArgs args = prepare(s, static_cast<const bf16*>(qkv), cut(s, scratch), stream);
  args.y = static_cast<bf16*>(y);
  args.stats = stats;
  if (takes_forward_groups(s) && flash::launch_forward_groups(args, stream)) {
    return;
  }
  flash::launch_forward(args, stream);
}

void flash_backward(const AttentionShape& s, const void* dy, const void* qkv, const void* y,
                    const float* stats, void* d_qkv, void* scratch, cudaStream_t stream,
                    const ColumnSums& sums) {
  const FlashScratch parts = cut(s, scratch);
  flash::FlashArgs args = prepare(s, static_cast<const bf16*>(qkv), parts, stream);
  args.dy = static_cast<const bf16*>(dy);
  args.y_in = static_cast<const bf16*>(y);
  args.stats = const_cast<float*>(stats);  // only the forward kernel writes through it
  args.dq = static_cast<bf16*>(d_qkv);
  args.dk = args.dq + s.heads * s.head_size;
  args.dv = args.dk + s.key_heads * s.head_size;
  args.dq_sums = parts.dq_sums;
  if (takes_fused(s)) {
    if (sums.to != nullptr) args.columns = parts.columns;
    flash::launch_backward_fused(args, stream);
    if (sums.to != nullptr) {
      flash::launch_total_columns(args, sums.to, sums.accumulate, stream);
    }
  } else {
    flash::launch_backward(args, stream);
  }
  if (s.rotary_base > 0) {
    turn(s, args.dq, args.d_stride, args.dq, args.d_stride, parts.turns, -1, stream);
  }
}

bool serves_column_sums(const AttentionShape& shape, bool bf16) {
  return flash_serves(shape, bf16) && sums_columns(shape);
}

std::size_t attention_scratch_bytes(const AttentionShape& shape, bool bf16) {
  return flash_serves(shape, bf16) ? flash_scratch_bytes(shape)
                                   : generic_scratch_bytes(shape, bf16);
}

void attention_forward(const AttentionShape& shape, const void* qkv, void* y, float* stats,
                       bool bf16, void* scratch, cudaStream_t stream) {
  if (flash_serves(shape, bf16)) return flash_forward(shape, qkv, y, stats, scratch, stream);
  generic_forward(shape, qkv, y, stats, bf16, scratch, stream);
}

void attention_backward(const AttentionShape& shape, const void* dy, const void* qkv, const void* y,
                        const float* stats, void* d_qkv, bool bf16, void* scratch,
                        cudaStream_t stream, const ColumnSums& sums) {
  if (flash_serves(shape, bf16)) {
    return flash_backward(shape, dy, qkv, y, stats, d_qkv, scratch, stream, sums);
  }
  generic_backward(shape, dy, qkv, y, stats, d_qkv, bf16, scratch, stream);
}

}  // namespace fathom::engine::cuda
