// Tests on a GPU run twice: with the kernels of its own generation, and with those that every
// served GPU has (CudaOptions::generic), so that one GPU tests what others will run.
#pragma once

#include <gtest/gtest.h>

#include "engine/cuda/module.h"
#include "engine/device.h"

namespace fathom::engine {

enum class GpuPath : std::uint8_t { own, generic };
constexpr auto enum_names(GpuPath) {
  return std::array{"own", "generic"};
}
inline const auto kGpuPaths = testing::Values(GpuPath::own, GpuPath::generic);

/// Why there is nothing to test on; empty where there is.
inline std::string why_no_gpu() {
  std::string why = "the driver sees no GPU";
  const CudaModule* module = find_cuda_module(&why);
  return module == nullptr || module->device_count() == 0 ? "no CUDA: " + why : "";
}

/// No cache of algorithms, unless one is set.
inline CudaOptions options_for(GpuPath path) {
  CudaOptions options;
  options.generic = path == GpuPath::generic;
  return options;
}

}  // namespace fathom::engine
