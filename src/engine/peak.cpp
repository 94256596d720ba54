#include "engine/peak.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "engine/cpu/matmul.h"
#include "engine/cpu/parallel.h"
#include "engine/cuda/module.h"

namespace fathom::engine {
namespace {

template <class Body>
double best_seconds(int repeats, Body body) {
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

double gemm_flops(int threads, DType dtype) {
  constexpr std::int64_t kSize = 1024;
  omp_set_num_threads(threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  cpu::Matmul gemm(engine, {.m = kSize, .n = kSize, .k = kSize, .input = dtype, .result = dtype});
  // Zeros would let the processor run cooler than real data.
  const std::vector<float> a(kSize * kSize, 1.5f), b(kSize * kSize, 0.75f);
  std::vector<float> c(kSize * kSize);
  const double seconds = best_seconds(20, [&] { gemm.run(stream, a.data(), b.data(), c.data()); });
  return 2.0 * kSize * kSize * kSize / seconds;
}

double memory_bandwidth(int threads) {
  constexpr std::int64_t kFloats = std::int64_t{1} << 26;
  std::vector<float> a(kFloats), b(kFloats, 1.0f), c(kFloats, 2.0f);
  const double seconds = best_seconds(4, [&] {
    cpu::parallel_ranges(threads, kFloats, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto k = static_cast<std::size_t>(i);
        a[k] = b[k] + 0.5f * c[k];
      }
    });
  });
  return 3.0 * 4.0 * kFloats / seconds;
}

}  // namespace

double measure_gemm_flops(const Device& device, DType dtype) {
  if (device.kind == DeviceKind::cpu) return gemm_flops(device.threads, dtype);
  return cuda_module().measure_gemm_flops(device.index, dtype);
}

double measure_memory_bandwidth(const Device& device) {
  if (device.kind == DeviceKind::cpu) return memory_bandwidth(device.threads);
  return cuda_module().measure_memory_bandwidth(device.index);
}

}  // namespace fathom::engine
