#include "study/local_executor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <list>
#include <thread>

#include "core/error.h"
#include "study/worker_process.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAttempts = 3;
constexpr int kStopped = 130;  // exit code of StoppedError
constexpr std::chrono::milliseconds kPause{10};
constexpr std::chrono::milliseconds kTick{200};

struct Job {
  const PlannedRun* run = nullptr;
  int attempts = 0;
};

struct Active {
  Job job;
  WorkerProcess process;
  std::int64_t first_step;
  Clock::time_point since;
};

class LocalExecutor {
 public:
  LocalExecutor(const Study& study, const std::vector<const PlannedRun*>& runs,
                const LocalOptions& options, const ExecutorEvents& events)
      : study_(study), options_(options), events_(events), total_(runs.size()), pace_(runs) {
    for (const PlannedRun* run : runs) {
      if (is_done(read_run_state(study.run_folder(run->id)).status)) {
        ++result_.done;
        pace_.begin(*run, run->spec.schedule.steps);
        pace_.finish(*run);
      } else {
        queue_.push_back({run, 0});
      }
    }
  }

  ExecutorResult go() {
    try {
      loop();
    } catch (...) {
      end_workers();
      throw;
    }
    return result_;
  }

 private:
  void loop() {
    auto next_tick = Clock::now();
    while (!queue_.empty() || !active_.empty()) {
      if (!result_.stopped && events_.stop && events_.stop()) {
        result_.stopped = true;
        for (const Active& active : active_) active.process.terminate();
      }
      if (result_.stopped && active_.empty()) return;
      if (!result_.stopped) start_workers();
      collect();
      if (Clock::now() >= next_tick) {
        next_tick = Clock::now() + kTick;
        if (events_.tick) events_.tick(snapshot());
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  void start_workers() {
    for (std::size_t looked = queue_.size(); looked > 0 && has_room(); --looked) {
      const Job job = queue_.front();
      queue_.pop_front();
      const fs::path folder = study_.run_folder(job.run->id);
      if (FileLock::holder(claim_path(folder))) {
        queue_.push_back(job);  // a worker of an earlier command is still writing its checkpoint
      } else if (const RunState state = read_run_state(folder); is_done(state.status)) {
        finish(job, state);
      } else {
        start(job);
      }
    }
  }

  bool has_room() const { return active_.size() < static_cast<std::size_t>(options_.jobs); }

  void start(const Job& job) {
    prepare_run_folder(study_, *job.run);
    const fs::path folder = study_.run_folder(job.run->id);
    std::vector<std::string> command{options_.program.string(), "study", "worker",
                                     study_.directory.string(), job.run->id};
    if (job.run->stem_step > 0) {
      command.insert(command.end(), {"--stem", std::to_string(job.run->stem_step)});
    }
    if (!job.run->stem_from.empty()) {
      command.insert(command.end(), {"--from", job.run->stem_from});
    }
    const std::int64_t first = read_run_tail(folder).step;
    pace_.begin(*job.run, first);
    active_.push_back({job, WorkerProcess(command, folder / "worker.log"), first, Clock::now()});
  }

  void collect() {
    for (auto active = active_.begin(); active != active_.end();) {
      const auto end = active->process.poll();
      if (!end) {
        ++active;
        continue;
      }
      Job job = active->job;
      active = active_.erase(active);
      settle(job, *end);
    }
  }

  /// What becomes of a run whose worker has ended.
  void settle(Job job, const WorkerExit& end) {
    const fs::path folder = study_.run_folder(job.run->id);
    const RunState state = read_run_state(folder);
    if (is_done(state.status)) return finish(job, state);
    if (result_.stopped) return;
    if (FileLock::holder(claim_path(folder))) return queue_.push_back(job);  // another has it
    const std::string reason = end.code == 0 && end.signal == 0
                                   ? std::string("the worker ended without a record")
                                   : describe(end, folder / "worker.log");
    ++job.attempts;
    const bool may_repeat = end.signal != 0 || end.code == kStopped;
    if (may_repeat && job.attempts < kAttempts) {
      if (events_.note) {
        events_.note(fmt::format("run {} ({}): {}; it goes on from its checkpoint", job.run->id,
                                 job.run->label(), reason));
      }
      queue_.push_front(job);
      return;
    }
    if (state.status != RunStatus::failed || end.signal != 0) write_failure(folder, reason);
    ++result_.failed;
    pace_.finish(*job.run);
    if (events_.ended) events_.ended(*job.run, read_run_state(folder));
  }

  void finish(const Job& job, const RunState& state) {
    ++result_.done;
    pace_.finish(*job.run);
    if (events_.ended) events_.ended(*job.run, state);
  }

  Snapshot snapshot() const {
    Snapshot snapshot;
    snapshot.total = total_;
    snapshot.done = result_.done;
    snapshot.failed = result_.failed;
    for (const Active& active : active_) {
      RunningModel model;
      model.run = active.job.run;
      model.tail = read_run_tail(study_.run_folder(active.job.run->id));
      const double seconds = std::chrono::duration<double>(Clock::now() - active.since).count();
      const std::int64_t steps = model.tail.step - active.first_step;
      if (steps > 0 && seconds > 0) {
        model.tokens_per_second =
            static_cast<double>(steps * model.run->spec.tokens_per_step()) / seconds;
      }
      snapshot.running.push_back(model);
    }
    pace_.fill(snapshot);
    return snapshot;
  }

  /// An error of our own (a full disk, say) must not leave workers behind.
  void end_workers() {
    for (const Active& active : active_) active.process.terminate();
    for (Active& active : active_) {
      while (!active.process.poll()) std::this_thread::sleep_for(kPause);
    }
  }

  const Study& study_;
  const LocalOptions& options_;
  const ExecutorEvents& events_;
  std::size_t total_;
  StudyPace pace_;
  std::deque<Job> queue_;
  std::list<Active> active_;
  ExecutorResult result_;
};

}  // namespace

fs::path own_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) throw InternalError("cannot find the program's own file");
  return program;
}

ExecutorResult run_local(const Study& study, const std::vector<const PlannedRun*>& runs,
                         const LocalOptions& options, const ExecutorEvents& events) {
  return LocalExecutor(study, runs, options, events).go();
}

}  // namespace fathom::study
