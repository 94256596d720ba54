// Where a plan runs: the processor, or a GPU through the CUDA module if there is one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/enum_names.h"
#include "engine/cuda/module.h"
#include "engine/executor.h"

namespace fathom::engine {

enum class DeviceKind : std::uint8_t { cpu, cuda };
constexpr auto enum_names(DeviceKind) {
  return std::array{"cpu", "cuda"};
}

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int threads = 1;  // cpu
  int index = 0;    // cuda
};

/// `plan` must outlive the executor. DeviceError when the device is not there.
std::unique_ptr<Executor> make_executor(const StepPlan& plan, const Device& device);

/// The loaded module. DeviceError, in one line: no module, a module of another build, no GPU.
const CudaModule& cuda_module();
/// The same without a GPU's presence being asked; nullptr and the reason when there is no module.
const CudaModule* find_cuda_module(std::string* why);

/// Whether cuda_module() would succeed.
bool find_cuda_device();

}  // namespace fathom::engine
