// What kernels share: packs of neighbouring elements of f32 or bf16, sums over a warp and a block
// in a fixed order.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "engine/cuda/launch.h"
#include "engine/cuda/operand.h"

namespace fathom::engine::cuda {

/// V neighbouring elements.
template <int V>
struct Pack {
  float v[V];
};

template <int V>
__device__ inline Pack<V> load(const float* p) {
  Pack<V> pack;
  if constexpr (V % 4 == 0) {
#pragma unroll
    for (int i = 0; i < V; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(p + i);
      pack.v[i] = four.x, pack.v[i + 1] = four.y, pack.v[i + 2] = four.z, pack.v[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < V; ++i) pack.v[i] = p[i];
  }
  return pack;
}

__device__ inline float2 unpack_bf16(std::uint32_t two) {
  return {__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u)};
}
__device__ inline std::uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&two);
}

template <int V>
__device__ inline Pack<V> load(const __nv_bfloat16* p) {
  Pack<V> pack;
  if constexpr (V == 8) {
    const uint4 words = *reinterpret_cast<const uint4*>(p);
    const float2 a = unpack_bf16(words.x), b = unpack_bf16(words.y), c = unpack_bf16(words.z),
                 d = unpack_bf16(words.w);
    pack = {a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y};
  } else if constexpr (V == 4) {
    const uint2 words = *reinterpret_cast<const uint2*>(p);
    const float2 a = unpack_bf16(words.x), b = unpack_bf16(words.y);
    pack = {a.x, a.y, b.x, b.y};
  } else {
#pragma unroll
    for (int i = 0; i < V; ++i) pack.v[i] = __bfloat162float(p[i]);
  }
  return pack;
}

template <int V>
__device__ inline void store(float* p, const Pack<V>& pack) {
  if constexpr (V % 4 == 0) {
#pragma unroll
    for (int i = 0; i < V; i += 4) {
      *reinterpret_cast<float4*>(p + i) = {pack.v[i], pack.v[i + 1], pack.v[i + 2], pack.v[i + 3]};
    }
  } else {
#pragma unroll
    for (int i = 0; i < V; ++i) p[i] = pack.v[i];
  }
}

template <int V>
__device__ inline void store(__nv_bfloat16* p, const Pack<V>& pack) {
  if constexpr (V == 8) {
    *reinterpret_cast<uint4*>(p) = {
        pack_bf16(pack.v[0], pack.v[1]), pack_bf16(pack.v[2], pack.v[3]),
        pack_bf16(pack.v[4], pack.v[5]), pack_bf16(pack.v[6], pack.v[7])};
  } else if constexpr (V == 4) {
    *reinterpret_cast<uint2*>(p) = {pack_bf16(pack.v[0], pack.v[1]),
                                    pack_bf16(pack.v[2], pack.v[3])};
  } else {
#pragma unroll
    for (int i = 0; i < V; ++i) p[i] = __float2bfloat16_rn(pack.v[i]);
  }
}

template <int V>
__device__ inline Pack<V> load(const Operand& operand, std::int64_t index) {
  if (operand.bf16) return load<V>(static_cast<const __nv_bfloat16*>(operand.data) + index);
  return load<V>(static_cast<const float*>(operand.data) + index);
}

template <int V>
__device__ inline void store(const Operand& operand, std::int64_t index, const Pack<V>& pack) {
  if (operand.bf16) {
    store<V>(static_cast<__nv_bfloat16*>(operand.data) + index, pack);
  } else {
    store<V>(static_cast<float*>(operand.data) + index, pack);
  }
}

/// place = value, or place += value.
template <int V>
__device__ inline void put(const Operand& operand, std::int64_t index, Pack<V> pack,
                           bool accumulate) {
  if (accumulate) {
    const Pack<V> old = load<V>(operand, index);
#pragma unroll
    for (int i = 0; i < V; ++i) pack.v[i] += old.v[i];
  }
  store<V>(operand, index, pack);
}

template <class T>
__device__ inline T warp_sum(T value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

__device__ inline float warp_max(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

/// The sum over a block of up to 1024 threads, known to all of them. `shared` holds 33 numbers and
/// is free again when the call returns.
template <class T>
__device__ inline T block_sum(T value, T* shared) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
  value = warp_sum(value);
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  if (warp == 0) {
    const T part = warp_sum(lane < warps ? shared[lane] : T(0));
    if (lane == 0) shared[32] = part;
  }
  __syncthreads();
  const T total = shared[32];
  __syncthreads();
  return total;
}

}  // namespace fathom::engine::cuda
