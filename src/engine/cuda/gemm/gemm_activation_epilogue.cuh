// The epilogues: what happens to a tile of accumulators on its way to memory, and the column sums
// of the backward.
//
// A warp handles its own 16 rows, 64 columns at a time, and never waits for another warp: results
// stay in one of its slots until TMA has read them. Slopes move between registers and memory in the
// order in which a thread holds them, see gemm_activation.h.
#pragma once

#include "engine/cuda/activation_value.cuh"
#include "engine/cuda/device.cuh"
#include "engine/cuda/gemm/gemm_activation_tiles.cuh"

namespace fathom::engine::cuda::gemm_activation {

constexpr float kToInteger =
    8388608;  // 2^23: adding it to a small number leaves that in the low bits

/// An activation as this file computes it: of w = scale (u + bias), the bias scaled beforehand,
/// with the code of its slope in the low byte. For the tanh GELU, scale^3 = k c gives the cube of w
/// the coefficient 1:
///   t = tanh(w (w^2 + s)),  s = k / scale,  y = w / (2 scale) (1 + t),
///   y' = 1/2 + (t + w (3 w^2 + s) (1 - t^2)) / 2
struct Coded {
  float y;
  std::uint32_t code;
};

template <ActivationKind kKind>
struct Scaled {
  static constexpr float kScale = 1;
  __device__ static Coded of(float w) {
    const Value value = evaluate<kKind, true>(w);
    return {value.y, __float_as_uint(fmaf(value.slope, kSlopeSteps, kSlopeZero + kToInteger))};
  }
};
template <>
struct Scaled<ActivationKind::gelu_tanh> {
  static constexpr float kScale = 0.32920349f;  // (k c)^(1/3)
  static constexpr float kLinear = 0.79788456080286536f / kScale;
  __device__ static Coded of(float w) {
    const float cubic = fmaf(w, w, kLinear), t = hyperbolic_tangent<true>(w * cubic);
    const float half = w * (0.5f / kScale), steep = w * fmaf(3.0f, cubic, -2 * kLinear);
    const float twice = fmaf(steep, fmaf(-t, t, 1.0f), t);  // 2 y' - 1
    return {fmaf(half, t, half), __float_as_uint(fmaf(twice, kSlopeSteps / 2,
                                                      kSlopeSteps / 2 + kSlopeZero + kToInteger))};
  }
};

/// The block's biases, scaled; zeros where there are none.
template <ActivationKind kKind>
__device__ __forceinline__ void put_bias(const GemmActivationArgs& args, float* bias, int column,
                                         int columns) {
  if (static_cast<int>(threadIdx.x) >= columns) return;
  const int c = column + static_cast<int>(threadIdx.x);
  const bool given = args.bias != nullptr && c < args.columns;
  bias[threadIdx.x] = given ? args.bias[c] * Scaled<kKind>::kScale : 0.0f;
}

/// The address of this thread's codes of 64 columns: two packs, kPackStep apart. Null outside the
/// matrix, and where there are none.
constexpr int kPackStep = 128;
__device__ __forceinline__ uint4* codes_at(const GemmActivationArgs& args, int tile, int column) {
  if (args.slopes == nullptr || tile >= args.tiles || column >= args.columns) return nullptr;
  const std::int64_t block = static_cast<std::int64_t>(tile) * (args.columns / 128) + column / 128;
  return args.slopes + block * 512 + (column / 64 % 2) * 256 + threadIdx.x % 128;
}

/// The low bytes of four words.
__device__ __forceinline__ std::uint32_t low_bytes(std::uint32_t a, std::uint32_t b,
                                                   std::uint32_t c, std::uint32_t d) {
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

/// Stores this warp's 16 x 64 results through a slot, four squares of 8 x 8 at a time.
__device__ __forceinline__ void send(const GemmActivationArgs& args, const Workspace& at,
                                     const std::uint32_t (&r)[4][4], int& slot, int tile,
                                     int column) {
  const int lane = threadIdx.x & 31, row = tile * kRows + ((threadIdx.x >> 5) & 3) * 16;
  const std::uint32_t to = at.slot(slot), own = to + a_offset<64>(lane);
  if (lane == 0) {  // until the slot's last results have been read
    if (args.slots == 1) tma_store_wait_read<0>();
    if (args.slots == 2) tma_store_wait_read<1>();
  }
  __syncwarp();
#pragma unroll
  for (int j = 0; j < 4; ++j) stmatrix_x4(own ^ (j << 5), r[j]);
  fence_proxy_async_shared();
  __syncwarp();
  if (lane == 0) {
    tma_store_2d(args.out, column, row, to);
    tma_store_commit();
  }
  slot = slot + 1 == args.slots ? 0 : slot + 1;
}

/// 64 columns of out, from c[FIRST] on, and their slopes; `bias` is that of the first column.
template <ActivationKind kKind, int FIRST, int N>
__device__ __forceinline__ void epilogue_forward(const GemmActivationArgs& args,
                                                 const Workspace& at, const float (&c)[N][4],
                                                 const float* bias, int& slot, int tile,
                                                 int column) {
  using Activation = Scaled<kKind>;
  std::uint32_t out[4][4], codes[8];
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float2 b = *reinterpret_cast<const float2*>(bias + n * 8);
    Coded v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[i] = Activation::of(fmaf(c[FIRST + n][i], Activation::kScale, (i & 1) ? b.y : b.x));
    }
    out[n / 2][n % 2 * 2] = pack_bf16(v[0].y, v[1].y);
    out[n / 2][n % 2 * 2 + 1] = pack_bf16(v[2].y, v[3].y);
    codes[n] = low_bytes(v[0].code, v[1].code, v[2].code, v[3].code);
  }
  if (uint4* to = codes_at(args, tile, column)) {
    to[0] = {codes[0], codes[1], codes[2], codes[3]};
    to[kPackStep] = {codes[4], codes[5], codes[6], codes[7]};
  }
  send(args, at, out, slot, tile, column);
}

/// The codes of 64 columns.
struct Codes {
  uint4 of[2] = {};
  __device__ __forceinline__ void load(const GemmActivationArgs& args, int tile, int column) {
    if (const uint4* from = codes_at(args, tile, column)) {
      of[0] = __ldcs(from), of[1] = __ldcs(from + kPackStep);
    }
  }
  __device__ __forceinline__ std::uint32_t word(int n) const {
    const uint4& four = of[n / 4];
    return n % 4 == 0 ? four.x : n % 4 == 1 ? four.y : n % 4 == 2 ? four.z : four.w;
  }
};

/// Prefetches 128 columns' codes to the L2 cache: 8 KiB, 64 bytes for each thread of a warpgroup.
__device__ __forceinline__ void prefetch_codes(const GemmActivationArgs& args, int tile,
                                               int column) {
  const uint4* from = codes_at(args, tile, column);
  if (from == nullptr || threadIdx.x % 8 != 0) return;
  for (int i = 0; i < 4; ++i) asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i * kPackStep));
}

/// 64 columns of out = c times slopes, from c[FIRST] on; adds to the sums of this thread's columns.
template <int FIRST, int N>
__device__ __forceinline__ void epilogue_backward(const GemmActivationArgs& args,
                                                  const Workspace& at, const float (&c)[N][4],
                                                  float (&sums)[N][2], const Codes& codes,
                                                  int& slot, int tile, int column) {
  std::uint32_t out[4][4];
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const std::uint32_t word = codes.word(n);
    float du[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // 2^23 + code, by its bits
      const float code = __uint_as_float(__byte_perm(word, 0x4b000000, 0x7540 + i));
      du[i] = (code - (kToInteger + kSlopeZero)) * (c[FIRST + n][i] * (1 / kSlopeSteps));
    }
    sums[FIRST + n][0] += du[0] + du[2];
    sums[FIRST + n][1] += du[1] + du[3];
    out[n / 2][n % 2 * 2] = pack_bf16(du[0], du[1]);
    out[n / 2][n % 2 * 2 + 1] = pack_bf16(du[2], du[3]);
  }
  send(args, at, out, slot, tile, column);
}

/// The sums of the block's columns over all its warps, in a fixed order: lanes, then warps. `rows`,
/// f32 [4 GROUPS, 8 N], is free once all workers have synchronised.
template <int GROUPS, int N>
__device__ __forceinline__ void put_sums(const GemmActivationArgs& args, float (&sums)[N][2],
                                         float* rows, int part, int column) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
#pragma unroll
      for (int lanes = 4; lanes < 32; lanes *= 2) {
        sums[n][e] += __shfl_xor_sync(0xffffffffu, sums[n][e], lanes);
      }
    }
  }
  sync_workers<GROUPS * 128>();
  if (lane < 4) {
    float* own = rows + static_cast<int>(threadIdx.x >> 5) * N * 8;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      own[n * 8 + lane * 2] = sums[n][0];
      own[n * 8 + lane * 2 + 1] = sums[n][1];
    }
  }
  sync_workers<GROUPS * 128>();
  const int c = static_cast<int>(threadIdx.x);
  if (c >= N * 8 || column + c >= args.columns) return;
  float sum = 0;
  for (int w = 0; w < GROUPS * 4; ++w) sum += rows[w * N * 8 + c];
  args.partial[static_cast<std::int64_t>(part) * args.columns + column + c] = sum;
}

}  // namespace fathom::engine::cuda::gemm_activation
