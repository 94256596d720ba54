#include "engine/device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "engine/cpu/cpu_executor.h"
#include "engine/cuda/module.h"

namespace fathom::engine {
namespace {

namespace fs = std::filesystem;
constexpr const char* kFile = "libfathom_cuda.so";

struct Loaded {
  const CudaModule* module = nullptr;
  std::string why;
};

/// Next to the program, in the lib folder of its installation, or wherever the loader looks.
void* open_module(std::string& why) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& place : {folder / kFile, folder.parent_path() / "lib" / kFile}) {
    if (!fs::exists(place, error)) continue;
    if (void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    why = fmt::format("{} cannot be loaded: {}", place.string(), dlerror());
    return nullptr;
  }
  void* handle = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) why = fmt::format("{} is not there; build it where nvcc is", kFile);
  return handle;
}

Loaded load() {
  Loaded loaded;
  void* handle = open_module(loaded.why);
  if (handle == nullptr) return loaded;
  const auto entry =
      reinterpret_cast<decltype(&fathom_cuda_module)>(dlsym(handle, kCudaModuleSymbol));
  if (entry == nullptr || entry()->version != kCudaModuleVersion) {
    loaded.why = fmt::format("{} belongs to another version of fathom; rebuild both", kFile);
    return loaded;
  }
  loaded.module = entry();
  return loaded;
}

std::string gemm_cache() {
  if (const char* folder = std::getenv("XDG_CACHE_HOME")) {
    return (fs::path(folder) / "fathom" / "cuda_products.txt").string();
  }
  if (const char* home = std::getenv("HOME")) {
    return (fs::path(home) / ".cache" / "fathom" / "cuda_products.txt").string();
  }
  return "";
}

int number_in_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace

const CudaModule* find_cuda_module(std::string* why) {
  // Opened once per process: CUDA does not survive being closed and reopened.
  static const Loaded loaded = load();
  if (why != nullptr && loaded.module == nullptr) *why = loaded.why;
  return loaded.module;
}

bool find_cuda_device() {
  const CudaModule* module = find_cuda_module(nullptr);
  return module != nullptr && module->device_count() > 0;
}

const CudaModule& cuda_module() {
  std::string why;
  const CudaModule* module = find_cuda_module(&why);
  if (module == nullptr) throw DeviceError("no CUDA device: " + why);
  if (module->device_count() == 0) throw DeviceError("no CUDA device: the driver sees no GPU");
  return *module;
}

CudaOptions cuda_options(int device) {
  CudaOptions options;
  options.device = device;
  options.gemm_cache = gemm_cache();
  options.lanes = std::max(1, number_in_environment("FATHOM_CUDA_LANES", options.lanes));
  options.generic = number_in_environment("FATHOM_CUDA_GENERIC", 0) != 0;
  return options;
}

PlanTarget cuda_target(const CudaOptions& options) {
  const CudaModule& module = cuda_module();
  const CudaDevice device = module.describe(options.device);
  PlanTarget target;
  if (device.capability != kHopper || options.generic) {
    target.offers = generic_gpu_offers();
    return target;
  }
  target.offers = hopper_offers(device.multiprocessors);
  target.measure = [&module, options](const std::vector<LinearNormShape>& shapes) {
    return module.measure_fusions(shapes, options);
  };
  return target;
}

PlanTarget target_of(const Device& device) {
  if (device.kind == DeviceKind::cpu) return {};
  return cuda_target(cuda_options(device.index));
}

std::unique_ptr<Executor> make_executor(const StepPlan& plan, const Device& device) {
  if (device.kind == DeviceKind::cpu) {
    return std::make_unique<CpuExecutor>(plan, CpuOptions{.threads = device.threads});
  }
  return cuda_module().make_executor(plan, cuda_options(device.index));
}

}  // namespace fathom::engine
