// What the kernels of fused_product.h share: who works where, where things lie in shared memory,
// and the products of a block of K.
//
// A tile of results has 64 rows and the columns of its block, and a warpgroup makes it. All tiles
// in shared memory have rows of 128 bytes in the 128-byte swizzle, 64 columns each. The copy engine
// guards the edges: zeros come in, nothing goes out.
#pragma once

#include "engine/cuda/attention_flash.cuh"
#include "engine/cuda/attention_wgmma.cuh"
#include "engine/cuda/bulk_copy.cuh"
#include "engine/cuda/fused_product.h"

namespace fathom::engine::cuda::fused {

constexpr int kRows = 64, kBlock = 64;           // of a tile; of K
constexpr int kChunkBytes = kRows * kBlock * 2;  // 64 x 64 of anything
constexpr int kSlotBytes = kChunkBytes / 4;      // the 16 rows of a warp
constexpr int kMostStages = 8;
constexpr int kRingBytes = 2 * kMostStages * 8;

/// The tiles of rows that a warpgroup takes: first, first + step and so on.
struct Share {
  int first, step, rounds;
};

/// Where a warpgroup's things lie in shared memory. A slot holds 64 columns of results of the
/// warpgroup's rows on their way out; a warp uses only its own part.
struct Workspace {
  std::uint32_t weights, stages, slots, ring;
  int stage_bytes;

  __device__ __forceinline__ std::uint32_t stage(int s) const { return stages + s * stage_bytes; }
  __device__ __forceinline__ std::uint32_t full(int s) const { return ring + s * 8; }
  __device__ __forceinline__ std::uint32_t empty(int s) const {
    return ring + (kMostStages + s) * 8;
  }
  __device__ __forceinline__ std::uint32_t slot(int i) const {
    return slots + i * kChunkBytes + ((threadIdx.x >> 5) & 3) * kSlotBytes;
  }
};

/// Barriers of a ring whose stages are used by `warps` warps.
__device__ __forceinline__ void make_ring(const Workspace& at, int stages, int warps) {
  for (int s = 0; s < stages; ++s) {
    make_barrier(at.full(s), 1);
    make_barrier(at.empty(s), warps);
  }
  publish_barriers();
}

/// The warps that fetch need few registers; those that multiply take what they leave.
template <int COUNT>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/// All threads that multiply.
template <int THREADS>
__device__ __forceinline__ void meet_workers() {
  asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

/// b of a block of K for the products.
template <bool kBackward>
__device__ __forceinline__ std::uint64_t describe_weights(std::uint32_t weights) {
  return kBackward ? flash::describe_turned<kChunkBytes>(weights) : flash::describe<128>(weights);
}
template <bool kBackward>
constexpr int kWeightStep = kBackward ? 128 : 2;  // 16 of K further, in units of 16 bytes

/// The tile of b from `column` on for a block of K.
template <bool kBackward, int COLUMNS>
__device__ __forceinline__ void fetch_weights(const FusedArgs& args, std::uint32_t to, int kb,
                                              int column, std::uint32_t full) {
  if constexpr (kBackward) {  // [K, N]: tiles of 64 rows x 64 columns
    for (int i = 0; i < COLUMNS / 64; ++i) {
      load_tile(to + i * kChunkBytes, args.b, column + i * 64, kb * kBlock, full);
    }
  } else {  // [N, K]: one tile
    load_tile(to, args.b, kb * kBlock, column, full);
  }
}

#define FATHOM_SUMS(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define FATHOM_SUMS_4(n) FATHOM_SUMS(n), FATHOM_SUMS(n + 1), FATHOM_SUMS(n + 2), FATHOM_SUMS(n + 3)

/// c[64 x 256] (+)= a[64 x 16] b[16 x 256]
template <bool TURN_B>
__device__ __forceinline__ void multiply_wide(float (&c)[32][4], std::uint64_t a, std::uint64_t b,
                                              bool add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %131, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      " %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      " %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      " %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "
      " %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, "
      " %125, %126, %127}, "
      "%128, %129, add, 1, 1, 0, %130;\n}"
      : FATHOM_SUMS_4(0), FATHOM_SUMS_4(4), FATHOM_SUMS_4(8), FATHOM_SUMS_4(12), FATHOM_SUMS_4(16),
        FATHOM_SUMS_4(20), FATHOM_SUMS_4(24), FATHOM_SUMS_4(28)
      : "l"(a), "l"(b), "n"(TURN_B ? 1 : 0), "r"(static_cast<int>(add)));
}
using flash::multiply_wide;

#undef FATHOM_SUMS
#undef FATHOM_SUMS_4

/// The products of a block of K: c = (or +=) a b, as one group.
template <bool kBackward, int N>
__device__ __forceinline__ void multiply_block(float (&c)[N][4], std::uint32_t a, std::uint32_t b,
                                               bool add) {
  const std::uint64_t left = flash::describe<128>(a), right = describe_weights<kBackward>(b);
  flash::begin_products();
#pragma unroll
  for (int kk = 0; kk < kBlock / 16; ++kk) {
    multiply_wide<kBackward>(c, left + kk * 2, right + kk * kWeightStep<kBackward>, add || kk > 0);
  }
  flash::commit_products();
}

}  // namespace fathom::engine::cuda::fused
