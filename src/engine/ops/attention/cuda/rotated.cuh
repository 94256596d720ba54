// Numbers of f32 or bf16, and those of a head rotated by rotary positions.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace fathom::engine::cuda {
namespace {

__device__ inline float value(const float* x, std::int64_t at) {
  return x[at];
}
__device__ inline float value(const __nv_bfloat16* x, std::int64_t at) {
  return __bfloat162float(x[at]);
}
__device__ inline void put(float* x, std::int64_t at, float v) {
  x[at] = v;
}
__device__ inline void put(__nv_bfloat16* x, std::int64_t at, float v) {
  x[at] = __float2bfloat16_rn(v);
}

/// Column c of a head at position t; without rotations the number itself.
template <class Value>
__device__ float rotated(const float2* rotations, const Value* head, int head_size, std::int64_t t,
                         int c) {
  const float own = value(head, c);
  if (rotations == nullptr) return own;
  const int half = head_size / 2;
  const float2 rotation = rotations[t * half + c % half];
  const float other = value(head, (c + half) % head_size);
  return c < half ? own * rotation.x - other * rotation.y : other * rotation.y + own * rotation.x;
}

/// The inverse, for gradients.
__device__ inline float rotated_back(const float2* rotations, const float* head, int head_size,
                                     std::int64_t t, int c) {
  if (rotations == nullptr) return head[c];
  const int half = head_size / 2;
  const float2 rotation = rotations[t * half + c % half];
  const float other = head[(c + half) % head_size];
  return c < half ? head[c] * rotation.x + other * rotation.y
                  : head[c] * rotation.x - other * rotation.y;
}

}  // namespace
}  // namespace fathom::engine::cuda
