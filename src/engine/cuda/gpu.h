// What launchers need to know about a GPU, looked up once for each executor.
#pragma once

#include <cstdint>

namespace fathom::engine::cuda {

struct Gpu {
  int device = 0;
  int capability = 0;  // 90 for sm_90
  int multiprocessors = 0;
  int shared_bytes = 0;  // of shared memory, the most a block may have
  std::int64_t l2_bytes = 0;
  bool hopper = false;  // whether kernels compiled for sm_90a alone (wgmma, TMA) may run
};

/// The least shared memory that a GPU of compute capability 8.0 or later gives to a block.
inline constexpr int kLeastSharedBytes = 99 << 10;

/// With `generic`, no more than what every supported GPU has. DeviceError when there is no such
/// device or it is too old.
Gpu find_gpu(int device, bool generic = false);

}  // namespace fathom::engine::cuda
