// Launches one program on the device: task by task the first time, which loads every kernel, and as
// a CUDA graph from then on.
#pragma once

#include <functional>
#include <optional>

#include "engine/cuda/binder.h"
#include "engine/cuda/streams.h"

namespace fathom::engine::cuda {

class StepGraph {
 public:
  StepGraph() = default;
  /// `streams` must outlive it.
  StepGraph(BoundProgram program, const Streams& streams);
  ~StepGraph();
  StepGraph(StepGraph&& other) noexcept;
  StepGraph& operator=(StepGraph&& other) noexcept;

  bool empty() const { return program_.tasks.empty(); }
  bool captured() const { return graph_ != nullptr; }
  /// Enqueues all tasks and returns; without `graphs` always task by task. Until the program is
  /// captured, the caller must take turns with other executors (capture_turn.h).
  void run(bool graphs);
  /// Enqueues all tasks as they were captured.
  void replay() const;
  /// Runs the tasks one after the other and reports the seconds of each with its op.
  void run_timed(const std::function<void(std::size_t, double)>& report) const;

 private:
  void launch() const;
  void capture();

  BoundProgram program_;
  const Streams* streams_ = nullptr;
  std::vector<Event> done_;            // of the tasks that the other lane waits for,
  std::vector<std::size_t> event_of_;  // by task; kNoEvent: not waited for
  std::optional<Event> fork_;          // where there is a side lane
  bool warm_ = false;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace fathom::engine::cuda
