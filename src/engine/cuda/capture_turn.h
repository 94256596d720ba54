// Captures in a process with several executors.
//
// CUDA ends a capture when any thread waits for the whole device meanwhile, and many calls do so
// without saying it: allocating, freeing, loading a kernel at its first launch. So a capture and
// everything that is not plain work on an executor's own stream take turns.
#pragma once

#include <mutex>

namespace fathom::engine::cuda {

inline std::mutex& capture_turn() {
  static std::mutex turn;
  return turn;
}

}  // namespace fathom::engine::cuda
