// The interface between the program and its CUDA module, libfathom_cuda.so: a table of functions
// behind one C symbol. The program opens the module at run time, so one binary serves machines with
// and without a GPU; nothing here needs CUDA's headers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/executor.h"

namespace fathom::engine {

class Inference;

struct CudaDevice {
  std::string name;
  int capability = 0;  // 90 for sm_90
  int multiprocessors = 0;
  std::int64_t total_bytes = 0, free_bytes = 0;
};

/// The compute capability for which the module has special kernels (wgmma, TMA).
inline constexpr int kHopper = 90;

struct CudaOptions {
  int device = 0;
  bool graphs = true;      // false: launch op by op, to test that both agree
  std::string gemm_cache;  // file of chosen GEMM algorithms and fusions; "": none is kept
  int lanes = 2;           // 1: weight gradients do not overlap with other work; same bits
  /// Use only what every supported GPU has, even on one that has more: no wgmma or TMA, 99 KB of
  /// shared memory. For tests of the kernels that other GPUs run.
  bool generic = false;
};

struct CudaModule {
  int version;
  int (*device_count)();
  CudaDevice (*describe)(int device);
  double (*measure_gemm_flops)(int device, DType dtype);
  double (*measure_memory_bandwidth)(int device);
  /// Whether each GEMM with the norm in it is faster than the two separately.
  std::vector<bool> (*measure_fusions)(const std::vector<LinearNormShape>& shapes,
                                       const CudaOptions& options);
  std::unique_ptr<Executor> (*make_executor)(const StepPlan& plan, const CudaOptions& options);
  /// Runs models trained elsewhere (engine/cuda/inference.h).
  std::unique_ptr<Inference> (*make_inference)(const CudaOptions& options);
};

/// Raised when the table or any class that crosses the interface changes.
inline constexpr int kCudaModuleVersion = 4;
inline constexpr const char* kCudaModuleSymbol = "fathom_cuda_module";

}  // namespace fathom::engine

extern "C" const fathom::engine::CudaModule* fathom_cuda_module();
