// TMA (sm_90): boxes of a tensor to and from shared memory, described by a tensor map
// (tensor_map.h). Loads report to an mbarrier and fill what lies outside the tensor with zeros;
// stores skip it. One thread issues a copy.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace fathom::engine::cuda::hopper {

__device__ __forceinline__ void tma_load_2d(std::uint32_t to, const CUtensorMap& map, int x, int y,
                                            std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}
__device__ __forceinline__ void tma_load_4d(std::uint32_t to, const CUtensorMap& map, int x, int y,
                                            int z, int w, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
      : "memory");
}
/// Starts at x of the first and y of the last dimension; the three between are whole.
__device__ __forceinline__ void tma_load_5d(std::uint32_t to, const CUtensorMap& map, int x, int y,
                                            std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %5, %5, %5, %3}], [%4];" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(y), "r"(barrier), "r"(0)
      : "memory");
}

/// The same into the blocks of a cluster whose bits are set, each at the same place and reporting
/// to its own barrier.
__device__ __forceinline__ void tma_multicast_2d(std::uint32_t to, const CUtensorMap& map, int x,
                                                 int y, std::uint32_t barrier,
                                                 std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(y), "r"(barrier), "h"(blocks)
      : "memory");
}
__device__ __forceinline__ void tma_multicast_5d(std::uint32_t to, const CUtensorMap& map, int x,
                                                 int y, std::uint32_t barrier,
                                                 std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %5, %5, %5, %3}], [%4], %6;" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(y), "r"(barrier), "r"(0), "h"(blocks)
      : "memory");
}

/// Plain bytes, without a tensor map.
template <int BYTES>
__device__ __forceinline__ void tma_load_bytes(std::uint32_t to, const void* from,
                                               std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(to),
      "l"(from), "n"(BYTES), "r"(barrier)
      : "memory");
}

__device__ __forceinline__ void tma_store_2d(const CUtensorMap& map, int x, int y,
                                             std::uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                   reinterpret_cast<std::uint64_t>(&map)),
               "r"(x), "r"(y), "r"(from)
               : "memory");
}
__device__ __forceinline__ void tma_store_4d(const CUtensorMap& map, int x, int y, int z, int w,
                                             std::uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(
          reinterpret_cast<std::uint64_t>(&map)),
      "r"(x), "r"(y), "r"(z), "r"(w), "r"(from)
      : "memory");
}
__device__ __forceinline__ void tma_store_bytes(void* to, std::uint32_t from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from),
               "r"(bytes)
               : "memory");
}
/// Adds floats to those in memory.
__device__ __forceinline__ void tma_reduce_add(float* to, std::uint32_t from, int bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
      "r"(from), "r"(bytes)
      : "memory");
}

__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until all but the last GROUPS groups of this thread's stores are done.
template <int GROUPS>
__device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(GROUPS) : "memory");
}
/// The same, but only until they have read shared memory.
template <int GROUPS>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(GROUPS) : "memory");
}

}  // namespace fathom::engine::cuda::hopper
