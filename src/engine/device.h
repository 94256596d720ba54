// Where a plan runs: the processor, or a GPU through the CUDA module if there is one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "core/enum_names.h"

namespace fathom::engine {

class Executor;     // engine/executor.h
class StepPlan;     // engine/plan/step_plan.h
struct PlanTarget;  // engine/plan/device_offers.h
struct CudaModule;  // engine/cuda/module.h
struct CudaOptions;

enum class DeviceKind : std::uint8_t { cpu, cuda };
constexpr auto enum_names(DeviceKind) {
  return std::array{"cpu", "cuda"};
}

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int threads = 1;  // cpu
  int index = 0;    // cuda
};

/// The target of a plan that will run on this device. DeviceError if the device is missing.
PlanTarget target_of(const Device& device);

/// `plan` must outlive the executor. DeviceError if the device is missing.
std::unique_ptr<Executor> make_executor(const StepPlan& plan, const Device& device);

/// The loaded module. DeviceError, in one line: no module, a module of another build, no GPU.
const CudaModule& cuda_module();
/// The same without checking for a GPU; nullptr and the reason when there is no module.
const CudaModule* find_cuda_module(std::string* why);

/// Whether cuda_module() would succeed.
bool find_cuda_device();

/// Options as the user's environment sets them: a cache file in the cache folder;
/// FATHOM_CUDA_LANES=1 runs all work on one lane, FATHOM_CUDA_GENERIC=1 makes a GPU of compute
/// capability 9.0 use the kernels of all others.
CudaOptions cuda_options(int device = 0);
/// target_of() for a GPU with the given options.
PlanTarget cuda_target(const CudaOptions& options);

}  // namespace fathom::engine
