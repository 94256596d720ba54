// What executors share: the runs to do, what they report meanwhile, how they are stopped, and the
// accounts they keep.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "study/ledger.h"
#include "study/run_state.h"
#include "study/study.h"
#include "train/metrics_file.h"

namespace fathom::study {

struct RunningModel {
  const PlannedRun* run = nullptr;
  train::RunTail tail;
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
  std::function<void(std::size_t runs, std::size_t done_before)> begun;
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

/// A run that a worker has taken, since when and from which step on.
struct Watched {
  const PlannedRun* run = nullptr;
  std::int64_t first_step = 0;
  std::chrono::steady_clock::time_point since;

  RunningModel look(const StudyFolder& folder) const;
};

/// The accounts of one call: counts, pace, the ledger, and who is notified.
class Tally {
 public:
  /// Counts what is done already; `open()` is the rest, in order.
  Tally(const Study& study, const std::vector<const PlannedRun*>& runs,
        const ExecutorEvents& events);

  const std::vector<const PlannedRun*>& open() const { return open_; }
  std::size_t left() const { return total_ - result_.done - result_.failed; }
  const ExecutorResult& result() const { return result_; }

  /// A worker starts or resumes the run.
  Watched begin(const PlannedRun& run);
  /// The run is done, or failed for good.
  void end(const PlannedRun& run, const RunState& state);
  void tick(std::vector<RunningModel> running, const std::string& note = "") const;
  void note(const std::string& text) const;
  bool stop_asked() const { return events_.stop && events_.stop(); }
  void stopped() { result_.stopped = true; }

 private:
  /// Notes that the tables are out of date, once for every reason.
  void tell_ledger();

  const Study& study_;
  const ExecutorEvents& events_;
  std::size_t total_;
  Ledger ledger_;
  std::string ledger_told_;
  StudyPace pace_;
  ExecutorResult result_;
  std::vector<const PlannedRun*> open_;
};

}  // namespace fathom::study
