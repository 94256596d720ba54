// Tensor-core building blocks of a warp (sm_80 and later): tiles in swizzled shared memory,
// cp.async copies into them, ldmatrix, and mma.m16n8k16 (bf16 in, f32 accumulators).
//
// A tile is ROWS x KP bf16 (KP: 16, 32, 64 or 128 columns), its 16-byte chunks permuted within a
// row so that the 8 rows an ldmatrix phase reads lie in 8 different bank groups. The permutation is
// an xor with bits of the row that repeat every 8 rows; hence the address of k-step kk is (address
// of step 0) ^ (kk << 5), and 16 rows further down is a constant offset. For rows of 128, 64 and 32
// bytes these are the swizzles that TMA and wgmma use on Hopper.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace fathom::engine::cuda {

using bf16 = __nv_bfloat16;

template <int KP>
__device__ __forceinline__ int swizzle(int row) {
  constexpr int kChunks = KP / 8;
  if constexpr (kChunks >= 8) {
    return row & 7;
  } else {
    return (row / (8 / kChunks)) & (kChunks - 1);
  }
}

/// Byte offset of a 16-byte chunk in a tile.
template <int KP>
__device__ __forceinline__ std::uint32_t chunk_offset(int row, int chunk) {
  return static_cast<std::uint32_t>(row * KP * 2 + ((chunk ^ swizzle<KP>(row)) << 4));
}

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// 16 or 4 bytes to shared memory; zeros where they are not valid.
__device__ __forceinline__ void cp_async_16(std::uint32_t to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void cp_async_4(std::uint32_t to, const void* from, bool valid) {
  const int bytes = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
__device__ __forceinline__ void cp_async_wait_all() {
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}

/// threadIdx.x, read again, so that what is computed from it is not held in registers across loops.
__device__ __forceinline__ int thread_now() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// c[16 x 8] += a[16 x 16] b[16 x 8]
__device__ __forceinline__ void mma_m16n8k16(float (&c)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Offsets of this lane for ldmatrix.x4 on a 16 x 16 block whose first row is a multiple of 8.
template <int KP>
__device__ __forceinline__ std::uint32_t a_offset(int lane) {  // a operand: rows m, columns k
  return chunk_offset<KP>(lane & 15, lane >> 4);
}
template <int KP>
__device__ __forceinline__ std::uint32_t b_offset(int lane) {  // b operand: rows n, columns k
  return chunk_offset<KP>((lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1);
}
template <int KP>
__device__ __forceinline__ std::uint32_t b_trans_offset(int lane) {  // b operand: rows k, columns n
  return chunk_offset<KP>(lane & 15, lane >> 4);
}

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Two floats as bf16, the first in the low half.
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

/// Over the four lanes that share a row of an accumulator.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

}  // namespace fathom::engine::cuda
