// Clusters of blocks (sm_90).
#pragma once

#include <cstdint>

namespace fathom::engine::cuda::hopper {

/// Arrives at the barrier that block `rank` of the cluster has at this address.
__device__ __forceinline__ void mbarrier_arrive_cluster(std::uint32_t barrier, int rank) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

/// Synchronises all threads of all blocks of the cluster.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ int cluster_ctarank() {
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}

}  // namespace fathom::engine::cuda::hopper
