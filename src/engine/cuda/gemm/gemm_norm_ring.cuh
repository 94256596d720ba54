// Shared memory of the kernels of gemm_norm.h: its layout, and the ring of chunks through which the
// norm's operands come and its results go.
//
// A chunk is 64 rows of 128 bytes in the 128-byte swizzle: 64 columns of bf16 or 32 of f32. The 16
// rows of a warp are 2048 bytes of it, whatever the type: a warp may overwrite with its results
// what it alone has read. TMA stores them from there; a chunk is released when that is done.
#pragma once

#include "engine/cuda/device.cuh"
#include "engine/cuda/gemm/gemm_norm.h"
#include "engine/cuda/hopper/cluster.cuh"
#include "engine/cuda/hopper/limits.h"
#include "engine/cuda/hopper/mbarrier.cuh"
#include "engine/cuda/hopper/tma.cuh"
#include "engine/cuda/hopper/wgmma.cuh"

namespace fathom::engine::cuda::gemm_norm {

using namespace hopper;

constexpr int kBlock = 64;                    // of K
constexpr int kChunkBytes = 64 * kBlock * 2;  // 64 x 64 of bf16, 64 x 32 of f32
constexpr int kMostChunks = 8, kMostStages = 8;
constexpr int kGroups = 2;   // warpgroups that multiply
constexpr int kVectors = 3;  // gain, shift, bias of the GEMM
constexpr int kBarriers = 2 * kGroups * kMostChunks + 2 * kMostStages + kGroups + 1;

__host__ __device__ constexpr int weight_bytes(int nb) {  // of b for a block of K
  return nb * kChunkBytes;
}
__host__ __device__ constexpr int stage_bytes(int nb) {  // of the stream: b and a for a block
  return weight_bytes(nb) + kChunkBytes;
}
/// Vectors, column sums of the warps (in the backward), barriers.
__host__ __device__ constexpr int tail_bytes(int nb, int sums) {
  return (kVectors + kGroups * 4 * sums) * nb * 64 * 4 + kBarriers * 8;
}

/// The layout of a warpgroup's shared memory.
struct Workspace {
  std::uint32_t weights;  // all of b, or the stages of the stream
  std::uint32_t chunks, vectors, sums, weights_full, ring, stream, turns;

  __device__ __forceinline__ std::uint32_t chunk(int i) const { return chunks + i * kChunkBytes; }
  __device__ __forceinline__ std::uint32_t full(int i) const { return ring + i * 8; }
  __device__ __forceinline__ std::uint32_t empty(int i) const {
    return ring + (kMostChunks + i) * 8;
  }
  __device__ __forceinline__ std::uint32_t stage_full(int s) const { return stream + s * 8; }
  __device__ __forceinline__ std::uint32_t stage_empty(int s) const {
    return stream + (kMostStages + s) * 8;
  }
  __device__ __forceinline__ std::uint32_t turn(int group) const { return turns + group * 8; }
};

template <int NB, bool kStreamed>
__device__ __forceinline__ Workspace workspace(const GemmNormArgs& args, std::uint32_t base,
                                               int group) {
  Workspace at;
  at.weights = base;
  const std::uint32_t rings =
      base + (kStreamed ? args.stages * stage_bytes(NB) : args.k_blocks * weight_bytes(NB));
  at.chunks = rings + group * args.chunks * kChunkBytes;
  at.vectors = rings + kGroups * args.chunks * kChunkBytes;
  at.sums = at.vectors + kVectors * NB * 64 * 4;
  at.weights_full = at.sums + kGroups * 4 * args.sums * NB * 64 * 4;
  at.turns = at.weights_full + 8;
  at.stream = at.turns + kGroups * 8;
  at.ring = at.stream + 2 * kMostStages * 8 + group * 2 * kMostChunks * 8;
  return at;
}

/// Synchronises all threads of a warpgroup.
__device__ __forceinline__ void sync_warpgroup(int group) {
  asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

/// Synchronises all threads that multiply.
__device__ __forceinline__ void sync_workers() {
  asm volatile("bar.sync %0, %1;" ::"n"(kGroups + 1), "n"(kGroups * 128) : "memory");
}

template <class T>
__device__ __forceinline__ T& shared_at(unsigned char* memory, std::uint32_t base,
                                        std::uint32_t address) {
  return *reinterpret_cast<T*>(memory + (address - base));
}

/// The state of a warpgroup that multiplies.
struct Worker {
  Workspace at;
  unsigned char* memory;
  std::uint32_t base;
  int group;
  int chunks;               // of the ring
  PipelineStage place;      // of the next chunk
  int held = 0;             // chunks that TMA may still be reading
  std::uint32_t queue = 0;  // their places, 4 bits each, the oldest lowest

  __device__ __forceinline__ bool leads() const { return threadIdx.x % 128 == 0; }
  __device__ __forceinline__ int lane() const { return threadIdx.x & 31; }
  __device__ __forceinline__ int warp() const { return (threadIdx.x >> 5) & 3; }
  template <class T>
  __device__ __forceinline__ T& shared(std::uint32_t address) const {
    return shared_at<T>(memory, base, address);
  }
  __device__ __forceinline__ const float* vector(int which, int width) const {
    return reinterpret_cast<const float*>(memory + (at.vectors - base)) + which * width;
  }
  /// The next chunk, once it has arrived.
  __device__ __forceinline__ std::uint32_t wait() const {
    mbarrier_wait(at.full(place.index), place.parity);
    return at.chunk(place.index);
  }
  /// The i-th of the held chunks, the oldest first.
  __device__ __forceinline__ int held_index(int i) const {
    return static_cast<int>(queue >> (4 * i)) & 15;
  }
  /// Done with the next chunk: nothing is being stored from it.
  __device__ __forceinline__ void give_back() {
    __syncwarp();
    if (lane() == 0) mbarrier_arrive(at.empty(place.index));
    place.advance(chunks);
  }
  /// Done with the next chunk except for what the leader has sent from it.
  __device__ __forceinline__ void hold() {
    queue |= static_cast<std::uint32_t>(place.index) << (4 * held++);
    place.advance(chunks);
  }
  /// Releases the held chunks except the last LEFT, which TMA may still be reading.
  template <int LEFT>
  __device__ __forceinline__ void settle() {
    if (held <= LEFT) return;
    if (leads()) tma_store_wait_read<LEFT>();
    for (; held > LEFT; --held, queue >>= 4) {
      if (leads()) mbarrier_arrive(at.empty(held_index(0)), 4);
    }
  }
  /// Stores what all warps have written at `from`.
  __device__ __forceinline__ void send(const CUtensorMap& map, int column, int tile,
                                       std::uint32_t from) const {
    fence_proxy_async_shared();
    sync_warpgroup(group);
    if (leads()) {
      tma_store_2d(map, column, tile * 64, from);
      tma_store_commit();
    }
  }
};

}  // namespace fathom::engine::cuda::gemm_norm
