// What `study run` shows while it runs: a live panel on a terminal, plain lines in a log; and the
// index and points.csv, kept up to date with every run that ends.
#pragma once

#include <chrono>

#include "cli/command_line.h"
#include "study/executor.h"
#include "study/study_index.h"
#include "terminal/live_panel.h"

namespace fathom {

class StudyProgress {
 public:
  StudyProgress(Session& session, const study::Study& study);
  /// Events for an executor; `stop` stays open.
  study::ExecutorEvents events();
  /// Takes the panel off the screen.
  void finish() { panel_.clear(); }

 private:
  void tick(const study::Snapshot& snapshot);
  void ended(const study::PlannedRun& run, const study::RunState& state);

  const study::Study& study_;
  LivePanel panel_;
  study::StudyIndex index_;
  std::vector<study::RunRow> rows_;
  std::size_t done_ = 0;
  std::chrono::steady_clock::time_point last_line_;
};

}  // namespace fathom
