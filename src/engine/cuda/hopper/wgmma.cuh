// Asynchronous matrix multiplication by a warpgroup (wgmma, sm_90a): 64 x N f32 accumulators in
// registers, bf16 operands in shared memory or (a) in registers.
//
// Tiles in shared memory have the swizzles of warp_mma.cuh and are passed as descriptors. A tile is
// used as it is (K runs along its rows) or transposed (K runs down its columns); in both cases the
// distance between groups of 8 rows is the only stride. Accumulators have the register layout of
// mma.m16n8k16, a warp holding 16 of the 64 rows: c[n][2 h + e] is row lane / 4 + 8 h of them,
// column 8 n + 2 (lane % 4) + e.
//
// Between a wgmma and the wait that covers it neither accumulators nor operands may be touched.
#pragma once

#include <cstdint>

#include "engine/cuda/warp_mma.cuh"

namespace fathom::engine::cuda::hopper {

/// A tile with rows of ROW_BYTES, `units` 16-byte units from the start of shared memory. Add units
/// to advance; the sum never carries into the upper half.
template <int ROW_BYTES>
struct SmemDescriptor {
  static_assert(ROW_BYTES == 128 || ROW_BYTES == 64 || ROW_BYTES == 32);
  static constexpr std::uint32_t kSwizzle = ROW_BYTES == 128 ? 1 : ROW_BYTES == 64 ? 2 : 3;
  static constexpr std::uint32_t kEightRows = ROW_BYTES * 8 / 16;
  std::uint32_t units;

  __device__ __forceinline__ operator std::uint64_t() const {
    return (std::uint64_t{(kSwizzle << 30) | kEightRows} << 32) | (units + (1u << 16));
  }
  __device__ __forceinline__ SmemDescriptor operator+(std::uint32_t more) const {
    return {units + more};
  }
};

/// The descriptor of the tile at an address in shared memory.
template <int ROW_BYTES>
__device__ __forceinline__ SmemDescriptor<ROW_BYTES> smem_descriptor(std::uint32_t tile) {
  return {(tile & 0x3ffff) >> 4};
}

/// The same for a transposed tile of more than 64 columns: blocks of 64 columns (rows of 128 bytes)
/// lie BLOCK_BYTES apart.
template <int BLOCK_BYTES>
__device__ __forceinline__ std::uint64_t smem_descriptor_transposed(std::uint32_t tile) {
  constexpr std::uint64_t kBlock = BLOCK_BYTES / 16, kEightRows = 64;
  return (std::uint64_t{1} << 62) | (kEightRows << 32) | (kBlock << 16) | ((tile & 0x3ffff) >> 4);
}

/// Registers written before this are seen by the wgmmas after it.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most GROUPS committed groups are unfinished.
template <int GROUPS>
__device__ __forceinline__ void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(GROUPS) : "memory");
}

/// Keeps the compiler from using accumulators before the wait above this line.
template <int N>
__device__ __forceinline__ void pin(float (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    asm volatile("" : "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])::"memory");
  }
}

/// Warps that only fetch need few registers; those that multiply take what they leave.
template <int COUNT>
__device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT>
__device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

__device__ __forceinline__ void stmatrix_x4(std::uint32_t address, const std::uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

// clang-format off
#define FATHOM_R8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define FATHOM_R16 FATHOM_R8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define FATHOM_R32 FATHOM_R16 \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FATHOM_R64 FATHOM_R32 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FATHOM_R96 FATHOM_R64 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define FATHOM_R128 FATHOM_R96 \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define FATHOM_C1(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define FATHOM_C2(n) FATHOM_C1(n), FATHOM_C1(n + 1)
#define FATHOM_C4(n) FATHOM_C2(n), FATHOM_C2(n + 2)
#define FATHOM_C8(n) FATHOM_C4(n), FATHOM_C4(n + 4)
#define FATHOM_WGMMA_SMEM(N, REGISTERS, A, B, TRANSPOSE_A, TRANSPOSE_B, ADD, ...) \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" ADD ", 0;\n" \
               "wgmma.mma_async.sync.aligned.m64n" N "k16.f32.bf16.bf16 {" REGISTERS "}, " \
               "%" A ", %" B ", add, 1, 1, %" TRANSPOSE_A ", %" TRANSPOSE_B ";\n}" \
               : __VA_ARGS__ \
               : "l"(a), "l"(b), "n"(TRANS_A ? 1 : 0), "n"(TRANS_B ? 1 : 0), \
                 "r"(static_cast<int>(add)))
#define FATHOM_WGMMA_REGISTERS(N, REGISTERS, A0, A1, A2, A3, B, TRANSPOSE_B, ADD, ...) \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" ADD ", 0;\n" \
               "wgmma.mma_async.sync.aligned.m64n" N "k16.f32.bf16.bf16 {" REGISTERS "}, " \
               "{%" A0 ", %" A1 ", %" A2 ", %" A3 "}, %" B ", add, 1, 1, %" TRANSPOSE_B ";\n}" \
               : __VA_ARGS__ \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TRANS_B ? 1 : 0), \
                 "r"(static_cast<int>(add)))

/// c[64 x N] (+)= a[64 x 16] b[16 x N], both in shared memory.
template <int N, bool TRANS_A, bool TRANS_B>
__device__ __forceinline__ void wgmma(float (&c)[N / 8][4], std::uint64_t a, std::uint64_t b,
                                      bool add) {
  static_assert(N == 32 || N == 64 || N == 128 || N == 192 || N == 256);
  if constexpr (N == 32) {
    FATHOM_WGMMA_SMEM("32", FATHOM_R16, "16", "17", "18", "19", "20", FATHOM_C4(0));
  } else if constexpr (N == 64) {
    FATHOM_WGMMA_SMEM("64", FATHOM_R32, "32", "33", "34", "35", "36", FATHOM_C8(0));
  } else if constexpr (N == 128) {
    FATHOM_WGMMA_SMEM("128", FATHOM_R64, "64", "65", "66", "67", "68", FATHOM_C8(0), FATHOM_C8(8));
  } else if constexpr (N == 192) {
    FATHOM_WGMMA_SMEM("192", FATHOM_R96, "96", "97", "98", "99", "100",
                      FATHOM_C8(0), FATHOM_C8(8), FATHOM_C8(16));
  } else {
    FATHOM_WGMMA_SMEM("256", FATHOM_R128, "128", "129", "130", "131", "132",
                      FATHOM_C8(0), FATHOM_C8(8), FATHOM_C8(16), FATHOM_C8(24));
  }
}

/// The same with a in registers.
template <int N, bool TRANS_B>
__device__ __forceinline__ void wgmma(float (&c)[N / 8][4], const std::uint32_t (&a)[4],
                                      std::uint64_t b, bool add) {
  static_assert(N == 16 || N == 32 || N == 64);
  if constexpr (N == 16) {
    FATHOM_WGMMA_REGISTERS("16", FATHOM_R8, "8", "9", "10", "11", "12", "13", "14", FATHOM_C2(0));
  } else if constexpr (N == 32) {
    FATHOM_WGMMA_REGISTERS("32", FATHOM_R16, "16", "17", "18", "19", "20", "21", "22", FATHOM_C4(0));
  } else {
    FATHOM_WGMMA_REGISTERS("64", FATHOM_R32, "32", "33", "34", "35", "36", "37", "38", FATHOM_C8(0));
  }
}

#undef FATHOM_R8
#undef FATHOM_R16
#undef FATHOM_R32
#undef FATHOM_R64
#undef FATHOM_R96
#undef FATHOM_R128
#undef FATHOM_C1
#undef FATHOM_C2
#undef FATHOM_C4
#undef FATHOM_C8
#undef FATHOM_WGMMA_SMEM
#undef FATHOM_WGMMA_REGISTERS
// clang-format on

}  // namespace fathom::engine::cuda::hopper
