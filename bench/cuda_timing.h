// What the kernel benchmarks share.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <random>
#include <vector>

#include "engine/bf16.h"
#include "engine/cuda/check.h"
#include "engine/cuda/memory.h"

namespace fathom::engine::cuda {

/// Memory of normal numbers, a million of them repeated: zeros would run cooler and faster.
inline Block random_block(std::int64_t size, bool bf16, float scale, unsigned seed) {
  constexpr std::int64_t kPattern = 1 << 20;
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> floats(kPattern);
  for (float& x : floats) x = normal(generator);
  std::vector<std::uint16_t> halves;
  for (const float x : floats) halves.push_back(to_bf16(x));
  const std::int64_t bytes = bf16 ? 2 : 4;
  Block block(size * bytes);
  for (std::int64_t at = 0; at < size; at += kPattern) {
    const void* from = bf16 ? static_cast<const void*>(halves.data()) : floats.data();
    check(cudaMemcpy(block.data() + at * bytes, from,
                     static_cast<std::size_t>(std::min(kPattern, size - at) * bytes),
                     cudaMemcpyHostToDevice),
          "copy");
  }
  return block;
}

/// Microseconds of a call, the mean of `repeats` after some warm-up calls; L2 is as the calls leave
/// it.
template <class Call>
double time_call(cudaStream_t stream, int repeats, const Call& call) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (int i = 0; i < repeats / 4; ++i) call();
  cudaEventRecord(begin, stream);
  for (int i = 0; i < repeats; ++i) call();
  cudaEventRecord(end, stream);
  check(cudaEventSynchronize(end), "timing");
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, begin, end);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return milliseconds * 1e3 / repeats;
}

}  // namespace fathom::engine::cuda
