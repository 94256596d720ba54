// The door between the program and its CUDA module, libfathom_cuda.so: a table of functions behind
// one C symbol. The program opens the module at run time, so one binary serves machines with and
// without a GPU; nothing here needs CUDA's headers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/executor.h"

namespace fathom::engine {

struct CudaDevice {
  std::string name;
  int capability = 0;  // 90 for sm_90
  int multiprocessors = 0;
  std::int64_t total_bytes = 0, free_bytes = 0;
};

struct CudaOptions {
  int device = 0;
  bool graphs = true;         // false: launch op by op, for the test that both agree
  std::string product_cache;  // file of chosen matrix-product algorithms; "": none is kept
  int lanes = 2;              // 1: no gradients of weights beside the other work; the same bits
};

struct CudaModule {
  int version;
  int (*device_count)();
  CudaDevice (*describe)(int device);
  double (*measure_product_flops)(int device, DType dtype);
  double (*measure_memory_bandwidth)(int device);
  std::unique_ptr<Executor> (*make_executor)(const StepPlan& plan, const CudaOptions& options);
};

/// Raised when the table or any class that crosses the door changes.
inline constexpr int kCudaModuleVersion = 2;
inline constexpr const char* kCudaModuleSymbol = "fathom_cuda_module";

}  // namespace fathom::engine

extern "C" const fathom::engine::CudaModule* fathom_cuda_module();
