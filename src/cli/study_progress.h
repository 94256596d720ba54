// What `study run` shows while it runs: a live panel on a terminal, plain lines in a log.
#pragma once

#include <chrono>

#include "cli/command_line.h"
#include "study/executor.h"
#include "terminal/live_panel.h"

namespace fathom {

class StudyProgress {
 public:
  explicit StudyProgress(Session& session);
  /// Events for an executor; `stop` stays open.
  study::ExecutorEvents events();
  /// Takes the panel off the screen.
  void finish() { panel_.clear(); }

 private:
  void begun(std::size_t runs, std::size_t done_before);
  void tick(const study::Snapshot& snapshot);
  void ended(const study::PlannedRun& run, const study::RunState& state);

  LivePanel panel_;
  std::size_t runs_ = 0, done_ = 0;
  std::chrono::steady_clock::time_point last_line_;
};

}  // namespace fathom
