#include "engine/cuda/module.h"

#include "engine/cuda/executor.h"
#include "engine/cuda/fusion_probe.h"
#include "engine/cuda/inference/cuda_inference.h"
#include "engine/cuda/peak.h"

namespace fathom::engine::cuda {
namespace {

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

CudaDevice describe(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "device properties");
  check(cudaSetDevice(device), "device");
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "device memory");
  return {properties.name, 10 * properties.major + properties.minor, properties.multiProcessorCount,
          static_cast<std::int64_t>(total), static_cast<std::int64_t>(free)};
}

std::unique_ptr<Executor> make_executor(const StepPlan& plan, const CudaOptions& options) {
  return std::make_unique<CudaExecutor>(plan, options);
}

}  // namespace
}  // namespace fathom::engine::cuda

extern "C" const fathom::engine::CudaModule* fathom_cuda_module() {
  namespace cuda = fathom::engine::cuda;
  static const fathom::engine::CudaModule module{fathom::engine::kCudaModuleVersion,
                                                 cuda::device_count,
                                                 cuda::describe,
                                                 cuda::measure_gemm_flops,
                                                 cuda::measure_memory_bandwidth,
                                                 cuda::measure_fusions,
                                                 cuda::make_executor,
                                                 cuda::make_inference};
  return &module;
}
