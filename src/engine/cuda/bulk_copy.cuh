// Tiles of a matrix to and from shared memory by the copy engine (sm_90), and the barriers in
// shared memory on which its arrival is waited for.
//
// A wait names the parity of the phase it waits for: 0 for a barrier's first completion, 1 for the
// second, and so on; waiting for parity 1 on a fresh barrier returns at once.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace fathom::engine::cuda {

/// Describes a tensor to the copy engine. The driver's function, asked of the runtime: the module
/// links no driver library. Null where the driver has none.
using TensorMapEncoder = decltype(&cuTensorMapEncodeTiled);
TensorMapEncoder tensor_map_encoder();

__device__ __forceinline__ void make_barrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// New barriers become visible to the copy engine; to other threads after the next block barrier.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// One arrival; the phase also waits for this many bytes.
__device__ __forceinline__ void arrive_expecting(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void wait_for(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n.reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

/// The tile at column x, row y. What lies outside of the matrix is filled with zeros.
__device__ __forceinline__ void load_tile(std::uint32_t to, const CUtensorMap& map, int x, int y,
                                          std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

/// What lies outside of the matrix is not written.
__device__ __forceinline__ void store_tile(const CUtensorMap& map, int x, int y,
                                           std::uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                   reinterpret_cast<std::uint64_t>(&map)),
               "r"(x), "r"(y), "r"(from)
               : "memory");
}

__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Until all but the last GROUPS groups of this thread's stores have read their tiles.
template <int GROUPS>
__device__ __forceinline__ void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(GROUPS) : "memory");
}

/// A place in a ring of buffers, and the parity of this time around.
struct Place {
  int index = 0;
  std::uint32_t parity = 0;
  __device__ __forceinline__ void advance(int size) {
    if (++index == size) {
      index = 0;
      parity ^= 1;
    }
  }
};

}  // namespace fathom::engine::cuda
