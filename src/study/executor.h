// What executors share: the runs to do, what they tell while at it, and how they are stopped.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "study/run_state.h"
#include "study/study_folder.h"

namespace fathom::study {

struct RunningModel {
  const PlannedRun* run = nullptr;
  RunTail tail;
  double tokens_per_second = 0;  // 0: not known yet
};

/// The study at one moment.
struct Snapshot {
  std::size_t total = 0, done = 0, failed = 0;
  std::vector<RunningModel> running;
  double elapsed_seconds = 0;
  double left_seconds = -1;  // below 0: not known yet
  std::string note;          // of the executor, e.g. the state of its queue
};

struct ExecutorEvents {
  std::function<void(const Snapshot&)> tick;  // a few times a second
  /// A run was done or failed; not called for runs that were done before.
  std::function<void(const PlannedRun&, const RunState&)> ended;
  std::function<void(const std::string&)> note;  // one line worth keeping
  std::function<bool()> stop;                    // true: checkpoint what runs, start nothing
};

struct ExecutorResult {
  std::size_t done = 0;    // all that have a record now
  std::size_t failed = 0;  // of this call
  bool stopped = false;
};

/// Speed of a study while it runs: FLOPs done since the start, and what that means for the rest.
class StudyPace {
 public:
  explicit StudyPace(const std::vector<const PlannedRun*>& runs);
  void begin(const PlannedRun& run, std::int64_t first_step);
  void finish(const PlannedRun& run);
  /// Fills elapsed and left from the running models' steps.
  void fill(Snapshot& snapshot) const;

 private:
  double elapsed() const;
  double left_flops_ = 0;
  double done_flops_ = 0;
  std::int64_t started_ns_;
  std::vector<std::pair<const PlannedRun*, std::int64_t>> first_steps_;
};

}  // namespace fathom::study
