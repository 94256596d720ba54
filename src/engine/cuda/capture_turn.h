// CUDA graph capture in a process with several executors.
//
// CUDA aborts a capture when any thread waits for the whole device meanwhile, and many calls do so
// implicitly: allocating, freeing, loading a kernel at its first launch. So a capture and
// everything that is not plain work on an executor's own stream take turns.
#pragma once

#include <mutex>

namespace fathom::engine::cuda {

inline std::mutex& capture_turn() {
  static std::mutex turn;
  return turn;
}

}  // namespace fathom::engine::cuda
