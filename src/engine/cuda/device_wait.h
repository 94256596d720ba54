// Waiting for the whole device, in a process with several executors.
//
// CUDA refuses to wait for a device while any of its streams is being captured, in whatever thread,
// and ends that capture. So captures and such waits take turns.
#pragma once

#include <cuda_runtime_api.h>

#include <mutex>

#include "engine/cuda/check.h"

namespace fathom::engine::cuda {

/// Held during a capture and during a wait for the device.
inline std::mutex& capture_turn() {
  static std::mutex turn;
  return turn;
}

inline void wait_for_device(const char* what) {
  const std::lock_guard lock(capture_turn());
  check(cudaDeviceSynchronize(), what);
}

}  // namespace fathom::engine::cuda
