// The products of row_product.h: 64 rows x 64 NB columns of sums in a warpgroup's registers, and
// copies of b that reach all blocks of a cluster.
#pragma once

#include "engine/cuda/attention_wgmma.cuh"
#include "engine/cuda/bulk_copy.cuh"

namespace fathom::engine::cuda::rows {

// clang-format off
#define FATHOM_R0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define FATHOM_R1 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FATHOM_R2 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define FATHOM_R3 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FATHOM_R4 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define FATHOM_R5 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define FATHOM_R6 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define FATHOM_R7 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define FATHOM_SUMS_8(c, n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define FATHOM_SUMS_64(c, n) FATHOM_SUMS_8(c, n), FATHOM_SUMS_8(c, n + 1), \
  FATHOM_SUMS_8(c, n + 2), FATHOM_SUMS_8(c, n + 3), FATHOM_SUMS_8(c, n + 4), \
  FATHOM_SUMS_8(c, n + 5), FATHOM_SUMS_8(c, n + 6), FATHOM_SUMS_8(c, n + 7)

/// c[64 x 64 NB] (+)= a[64 x 16] b[16 x 64 NB], a as it lies, b as it lies or turned.
template <int NB, bool TURN_B>
__device__ __forceinline__ void multiply_rows(float (&c)[8 * NB][4], std::uint64_t a,
                                              std::uint64_t b, bool add) {
  static_assert(NB >= 1 && NB <= 4);
  if constexpr (NB == 1) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %35, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" FATHOM_R0 ", " FATHOM_R1 "}, "
        "%32, %33, add, 1, 1, 0, %34;\n}"
        : FATHOM_SUMS_64(c, 0)
        : "l"(a), "l"(b), "n"(TURN_B ? 1 : 0), "r"(static_cast<int>(add)));
  } else if constexpr (NB == 2) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %67, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" FATHOM_R0 ", " FATHOM_R1 ", " FATHOM_R2 ", " FATHOM_R3 "}, "
        "%64, %65, add, 1, 1, 0, %66;\n}"
        : FATHOM_SUMS_64(c, 0), FATHOM_SUMS_64(c, 8)
        : "l"(a), "l"(b), "n"(TURN_B ? 1 : 0), "r"(static_cast<int>(add)));
  } else if constexpr (NB == 3) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %99, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {" FATHOM_R0 ", " FATHOM_R1 ", " FATHOM_R2 ", " FATHOM_R3 ", " FATHOM_R4 ", " FATHOM_R5 "}, "
        "%96, %97, add, 1, 1, 0, %98;\n}"
        : FATHOM_SUMS_64(c, 0), FATHOM_SUMS_64(c, 8), FATHOM_SUMS_64(c, 16)
        : "l"(a), "l"(b), "n"(TURN_B ? 1 : 0), "r"(static_cast<int>(add)));
  } else {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %131, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" FATHOM_R0 ", " FATHOM_R1 ", " FATHOM_R2 ", " FATHOM_R3 ", " FATHOM_R4 ", " FATHOM_R5 ", " FATHOM_R6 ", " FATHOM_R7 "}, "
        "%128, %129, add, 1, 1, 0, %130;\n}"
        : FATHOM_SUMS_64(c, 0), FATHOM_SUMS_64(c, 8), FATHOM_SUMS_64(c, 16), FATHOM_SUMS_64(c, 24)
        : "l"(a), "l"(b), "n"(TURN_B ? 1 : 0), "r"(static_cast<int>(add)));
  }
}
#undef FATHOM_R0
#undef FATHOM_R1
#undef FATHOM_R2
#undef FATHOM_R3
#undef FATHOM_R4
#undef FATHOM_R5
#undef FATHOM_R6
#undef FATHOM_R7
#undef FATHOM_SUMS_8
#undef FATHOM_SUMS_64
// clang-format on

/// Columns x.., and rows of b in the order of a map of five dimensions (see row_product.cu): from
/// group of 16 rows `y` on.
__device__ __forceinline__ void load_tile_5d(std::uint32_t to, const CUtensorMap& map, int x, int y,
                                             std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %5, %5, %5, %3}], [%4];" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(y), "r"(barrier), "r"(0)
      : "memory");
}

/// The same, and load_tile, into the blocks of a cluster whose bits are set, each at the same place
/// and with news to its own barrier.
__device__ __forceinline__ void share_tile_5d(std::uint32_t to, const CUtensorMap& map, int x,
                                              int y, std::uint32_t barrier, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %5, %5, %5, %3}], [%4], %6;" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(y), "r"(barrier), "r"(0), "h"(blocks)
      : "memory");
}
__device__ __forceinline__ void share_tile(std::uint32_t to, const CUtensorMap& map, int x, int y,
                                           std::uint32_t barrier, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(y), "r"(barrier), "h"(blocks)
      : "memory");
}

__device__ __forceinline__ void arrive_times(std::uint32_t barrier, int count) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(count)
               : "memory");
}

/// Arrives at the barrier that block `rank` of the cluster has at this place.
__device__ __forceinline__ void arrive_at(std::uint32_t barrier, int rank) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

/// All threads of all blocks of the cluster.
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ int rank_in_cluster() {
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}

}  // namespace fathom::engine::cuda::rows
