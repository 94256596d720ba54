#include "engine/cuda/gpu.h"

#include <algorithm>

#include "engine/cuda/check.h"
#include "engine/cuda/module.h"

namespace fathom::engine::cuda {
namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device), "device attribute");
  return value;
}

}  // namespace

Gpu find_gpu(int device, bool generic) {
  Gpu gpu;
  gpu.device = device;
  gpu.capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor, device) +
                   attribute(cudaDevAttrComputeCapabilityMinor, device);
  if (gpu.capability < 80) {
    throw DeviceError("this GPU has compute capability " + std::to_string(gpu.capability / 10) +
                      "." + std::to_string(gpu.capability % 10) + "; 8.0 or later is needed");
  }
  gpu.multiprocessors = attribute(cudaDevAttrMultiProcessorCount, device);
  gpu.shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  gpu.l2_bytes = attribute(cudaDevAttrL2CacheSize, device);
  gpu.hopper = gpu.capability == kHopper && !generic;
  if (generic) gpu.shared_bytes = std::min(gpu.shared_bytes, kLeastSharedBytes);
  return gpu;
}

}  // namespace fathom::engine::cuda
