// Tiles of 64 rows brought to shared memory by the copy engine (sm_90), which leaves them in the
// swizzled layout of attention_flash.cuh, fills what lies beyond the head or the sequence with
// zeros, and reports to a barrier in shared memory.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "engine/cuda/attention_flash.cuh"
#include "engine/cuda/bulk_copy.cuh"

namespace fathom::engine::cuda::flash {

constexpr int kCopyRows = 64;

/// q, k and v as the copy engine sees them: [batch][context][heads][head size].
struct CopyMaps {
  CUtensorMap q, k, v;
};
/// The same for the adjoint: dq, dk and dv in parts of 16 rows.
struct AdjointMaps : CopyMaps {
  CUtensorMap dy, dq, dk, dv;
};

/// Fills the maps for copies of 64 rows and `columns` columns; false where there is no such engine.
bool make_copy_maps(CopyMaps& maps, const FlashArgs& args, int columns);
bool make_adjoint_maps(AdjointMaps& maps, const FlashArgs& args, int columns);

/// wait_for() as one statement: the compiler unrolls loops around it.
__device__ __forceinline__ void wait_in_loop(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\n"
      "bra again;\n"
      "over:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// One thread: rows [row, row + 64) and columns from `column` of a head.
__device__ __forceinline__ void copy_rows(std::uint32_t to, const CUtensorMap& map, int column,
                                          int head, int row, int b, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(column), "r"(head), "r"(row), "r"(b),
      "r"(barrier)
      : "memory");
}

/// One thread: the rows from `row` of a head from shared memory; those outside are not written.
__device__ __forceinline__ void send_rows(const CUtensorMap& map, int head, int row, int b,
                                          std::uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(
          reinterpret_cast<std::uint64_t>(&map)),
      "r"(0), "r"(head), "r"(row), "r"(b), "r"(from)
      : "memory");
}

/// Adds one to a number in shared memory and returns what it was; what this thread saw before is
/// over for the thread that sees the sum.
__device__ __forceinline__ int count_one(std::uint32_t number) {
  int before;
  asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "r"(number)
               : "memory");
  return before;
}

}  // namespace fathom::engine::cuda::flash
