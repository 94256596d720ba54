#include "engine/cuda/peak.h"

#include <algorithm>

#include "engine/cuda/device.cuh"
#include "engine/cuda/memory.h"

namespace fathom::engine::cuda {
namespace {

/// Seconds of the best of several calls.
template <class Call>
double best_seconds(cudaStream_t stream, int repeats, const Call& call) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  float best = 1e30f;
  for (int i = 0; i < repeats; ++i) {
    cudaEventRecord(begin, stream);
    call();
    cudaEventRecord(end, stream);
    check(cudaEventSynchronize(end), "measuring");
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, begin, end);
    best = std::min(best, milliseconds);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return best * 1e-3;
}

__global__ void fill_kernel(float* values, std::int64_t size) {
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < size;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    values[i] = static_cast<float>((i * 2654435761u) >> 8 & 0xffff) * (1.0f / 65536) - 0.5f;
  }
}

__global__ void convert_kernel(const float* from, __nv_bfloat16* to, std::int64_t size) {
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < size;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    to[i] = __float2bfloat16_rn(from[i]);
  }
}

}  // namespace

/// GEMMs of 8192 x 8192 matrices of random numbers: zeros would run cooler and faster.
double measure_gemm_flops(int device, DType dtype) {
  check(cudaSetDevice(device), "device");
  const std::int64_t n = dtype == DType::bf16 ? 8192 : 4096;
  Block values(n * n * 4), a(n * n * 4), c(n * n * 4);
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  fill_kernel<<<1024, 256, 0, stream>>>(reinterpret_cast<float*>(values.data()), n * n);
  const void* operand = values.data();
  if (dtype == DType::bf16) {
    convert_kernel<<<1024, 256, 0, stream>>>(reinterpret_cast<float*>(values.data()),
                                             reinterpret_cast<__nv_bfloat16*>(a.data()), n * n);
    operand = a.data();
  }
  double seconds = 0;
  {
    GemmLibrary gemms(device, "", stream);
    const GemmOperands operands{operand, operand, c.data()};
    const auto gemm = gemms.get(
        {.m = n, .n = n, .k = n, .transpose_b = true, .input = dtype, .result = dtype}, operands);
    seconds = best_seconds(stream, 12, [&] { gemm->run(operands, stream); });
  }
  cudaStreamDestroy(stream);
  return 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / seconds;
}

double measure_memory_bandwidth(int device) {
  check(cudaSetDevice(device), "device");
  const std::int64_t bytes = std::int64_t{1} << 30;
  Block from(bytes), to(bytes);
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  const double seconds = best_seconds(stream, 10, [&] {
    cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(bytes),
                    cudaMemcpyDeviceToDevice, stream);
  });
  cudaStreamDestroy(stream);
  return 2.0 * static_cast<double>(bytes) / seconds;
}

}  // namespace fathom::engine::cuda
