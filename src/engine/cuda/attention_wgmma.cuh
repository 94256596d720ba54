// Asynchronous matrix products of a warpgroup (wgmma, sm_90a): 64 x N sums in registers, bf16
// operands in shared memory or (the left one) in registers.
//
// The tiles of attention_flash.cuh are in the layouts these products read: rows of 128, 64 or 32
// bytes whose 16-byte chunks are permuted by the row are the 128-, 64- and 32-byte swizzles. A tile
// serves "as it lies" (its columns are summed over) or "turned" (its rows are summed over); in both
// the distance between groups of 8 rows is the only stride. Sums have the same places in registers
// as those of mma.m16n8k16, a warp holding 16 of the 64 rows.
//
// Between multiply_* and the wait that covers it neither sums nor operands may be touched.
#pragma once

#include <cstdint>

#include "engine/cuda/attention_flash.cuh"

// Whether the code being compiled may use them: host code, or device code for sm_90a itself.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define FATHOM_WGMMA 1
#else
#define FATHOM_WGMMA 0
#endif

namespace fathom::engine::cuda::flash {

/// A tile with rows of ROW_BYTES as the tensor cores see it, so many 16-byte units from the start
/// of shared memory. Later units: add; the place never carries into the upper half.
template <int ROW_BYTES>
struct Described {
  static_assert(ROW_BYTES == 128 || ROW_BYTES == 64 || ROW_BYTES == 32);
  static constexpr std::uint32_t kSwizzle = ROW_BYTES == 128 ? 1 : ROW_BYTES == 64 ? 2 : 3;
  static constexpr std::uint32_t kEightRows = ROW_BYTES * 8 / 16;
  std::uint32_t units;

  __device__ __forceinline__ operator std::uint64_t() const {
    return (std::uint64_t{(kSwizzle << 30) | kEightRows} << 32) | (units + (1u << 16));
  }
  __device__ __forceinline__ Described operator+(std::uint32_t more) const {
    return {units + more};
  }
};

/// Describes the tile at an address in shared memory.
template <int ROW_BYTES>
__device__ __forceinline__ Described<ROW_BYTES> describe(std::uint32_t tile) {
  return {(tile & 0x3ffff) >> 4};
}

/// The same for a turned tile of more than 64 columns: blocks of 64 columns (rows of 128 bytes) lie
/// BLOCK_BYTES apart.
template <int BLOCK_BYTES>
__device__ __forceinline__ std::uint64_t describe_turned(std::uint32_t tile) {
  constexpr std::uint64_t kBlock = BLOCK_BYTES / 16, kEightRows = 64;
  return (std::uint64_t{1} << 62) | (kEightRows << 32) | (kBlock << 16) | ((tile & 0x3ffff) >> 4);
}

/// Registers written before this are seen by the products after it.
__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Until at most GROUPS committed groups are unfinished.
template <int GROUPS>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(GROUPS) : "memory");
}

/// What this thread wrote to shared memory becomes visible to products after the next barrier.
__device__ __forceinline__ void publish_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Keeps the compiler from using sums before the wait above this line.
template <int N>
__device__ __forceinline__ void pin(float (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    asm volatile("" : "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])::"memory");
  }
}

__device__ __forceinline__ void store_matrices(std::uint32_t address, const std::uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

/// The left operand of 16 columns of c.
__device__ __forceinline__ void pack_columns(std::uint32_t (&a)[4], const float (&c)[8][4],
                                             int kk) {
  a[0] = pack(c[2 * kk][0], c[2 * kk][1]);
  a[1] = pack(c[2 * kk][2], c[2 * kk][3]);
  a[2] = pack(c[2 * kk + 1][0], c[2 * kk + 1][1]);
  a[3] = pack(c[2 * kk + 1][2], c[2 * kk + 1][3]);
}

/// This warp's 16 rows of c, the first 8 times `upper`, the others times `lower`, as bf16; the
/// lanes of a quad share 32 bytes of a row.
template <int N>
__device__ __forceinline__ void store_fragment(const float (&c)[N][4], float upper, float lower,
                                               bf16* to, std::int64_t stride, int rows_left,
                                               int columns_left, int lane) {
  const bool odd = lane & 1;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = half * 8 + (lane >> 2);
    const float factor = half == 0 ? upper : lower;
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      const std::uint32_t a = pack(c[n][2 * half] * factor, c[n][2 * half + 1] * factor);
      const std::uint32_t b = pack(c[n + 1][2 * half] * factor, c[n + 1][2 * half + 1] * factor);
      const std::uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? a : b, 1);
      const int chunk = n + (odd ? 1 : 0);
      if (row < rows_left && chunk * 8 < columns_left) {
        *reinterpret_cast<uint2*>(to + row * stride + chunk * 8 + (lane & 2) * 2) =
            odd ? uint2{other, b} : uint2{a, other};
      }
    }
  }
}

template <class T, int N>
__device__ __forceinline__ void clear(T (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) c[n][i] = 0;
  }
}

#define FATHOM_SUMS_8(c, n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define FATHOM_SUMS_16(c) FATHOM_SUMS_8(c, 0), FATHOM_SUMS_8(c, 1)
#define FATHOM_SUMS_32(c) \
  FATHOM_SUMS_8(c, 0), FATHOM_SUMS_8(c, 1), FATHOM_SUMS_8(c, 2), FATHOM_SUMS_8(c, 3)
#define FATHOM_SUMS_64(c)                                                           \
  FATHOM_SUMS_32(c), FATHOM_SUMS_8(c, 4), FATHOM_SUMS_8(c, 5), FATHOM_SUMS_8(c, 6), \
      FATHOM_SUMS_8(c, 7)

/// c[64 x N] (+)= a[64 x 16] b, b[16 x N] a tile as it lies (N rows) or turned (16 rows).
template <int N, bool TURN_B>
__device__ __forceinline__ void multiply_registers(float (&c)[N / 8][4],
                                                   const std::uint32_t (&a)[4], std::uint64_t b,
                                                   bool add) {
  static_assert(N == 64 || N == 32 || N == 16);
  if constexpr (N == 64) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %38, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, add, 1, 1, %37;\n}"
        : FATHOM_SUMS_64(c)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TURN_B ? 1 : 0),
          "r"(static_cast<int>(add)));
  } else if constexpr (N == 16) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %14, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, %12, add, 1, 1, %13;\n}"
        : FATHOM_SUMS_16(c)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TURN_B ? 1 : 0),
          "r"(static_cast<int>(add)));
  } else {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %22, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
        "{%16, %17, %18, %19}, %20, add, 1, 1, %21;\n}"
        : FATHOM_SUMS_32(c)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TURN_B ? 1 : 0),
          "r"(static_cast<int>(add)));
  }
}

/// c[64 x N] (+)= a[64 x 16] b[16 x N], both tiles as they lie or both turned.
template <int N, bool TURN>
__device__ __forceinline__ void multiply_tiles(float (&c)[N / 8][4], std::uint64_t a,
                                               std::uint64_t b, bool add) {
  static_assert(N == 64 || N == 32);
  if constexpr (N == 64) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %35, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, add, 1, 1, %34, %34;\n}"
        : FATHOM_SUMS_64(c)
        : "l"(a), "l"(b), "n"(TURN ? 1 : 0), "r"(static_cast<int>(add)));
  } else {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %19, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
        "%16, %17, add, 1, 1, %18, %18;\n}"
        : FATHOM_SUMS_32(c)
        : "l"(a), "l"(b), "n"(TURN ? 1 : 0), "r"(static_cast<int>(add)));
  }
}

/// c[64 x 128] (+)= a[64 x 16] b[16 x 128], a as it lies, b as it lies (128 rows) or turned.
template <bool TURN_B>
__device__ __forceinline__ void multiply_wide(float (&c)[16][4], std::uint64_t a, std::uint64_t b,
                                              bool add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %67, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, add, 1, 1, 0, %66;\n}"
      : FATHOM_SUMS_64(c), FATHOM_SUMS_8(c, 8), FATHOM_SUMS_8(c, 9), FATHOM_SUMS_8(c, 10),
        FATHOM_SUMS_8(c, 11), FATHOM_SUMS_8(c, 12), FATHOM_SUMS_8(c, 13), FATHOM_SUMS_8(c, 14),
        FATHOM_SUMS_8(c, 15)
      : "l"(a), "l"(b), "n"(TURN_B ? 1 : 0), "r"(static_cast<int>(add)));
}

#undef FATHOM_SUMS_8
#undef FATHOM_SUMS_16
#undef FATHOM_SUMS_32
#undef FATHOM_SUMS_64

}  // namespace fathom::engine::cuda::flash
