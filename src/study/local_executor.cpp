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
  Watched watched;
};

class LocalExecutor {
 public:
  LocalExecutor(const Study& study, const std::vector<const PlannedRun*>& runs,
                const LocalOptions& options, const ExecutorEvents& events)
      : study_(study), options_(options), tally_(study, runs, events) {
    for (const PlannedRun* run : tally_.open()) queue_.push_back({run, 0});
  }

  ExecutorResult go() {
    try {
      loop();
    } catch (...) {
      end_workers();
      throw;
    }
    return tally_.result();
  }

 private:
  bool stopping() const { return tally_.result().stopped; }

  void loop() {
    auto next_tick = Clock::now();
    while (!queue_.empty() || !active_.empty()) {
      if (!stopping() && tally_.stop_asked()) {
        tally_.stopped();
        for (const Active& active : active_) active.process.terminate();
      }
      if (stopping() && active_.empty()) return;
      if (!stopping()) start_workers();
      collect();
      if (Clock::now() >= next_tick) {
        next_tick = Clock::now() + kTick;
        tally_.tick(running());
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  void start_workers() {
    for (std::size_t looked = queue_.size(); looked > 0 && has_room(); --looked) {
      const Job job = queue_.front();
      queue_.pop_front();
      const StudyRunFolder folder = study_.folder.run(job.run->id);
      if (FileLock::holder(folder.claim())) {
        queue_.push_back(job);  // a worker of an earlier command is still writing its checkpoint
      } else if (const RunState state = read_run_state(folder); is_done(state.status)) {
        tally_.end(*job.run, state);
      } else {
        start(job);
      }
    }
  }

  bool has_room() const { return std::ssize(active_) < options_.jobs; }

  void start(const Job& job) {
    prepare_run_folder(study_, *job.run);
    std::vector<std::string> command{options_.program.string(), "study", "worker",
                                     study_.folder.name(), job.run->id};
    if (job.run->stem_step > 0) {
      command.insert(command.end(), {"--stem", std::to_string(job.run->stem_step)});
    }
    if (!job.run->stem_from.empty()) {
      command.insert(command.end(), {"--from", job.run->stem_from});
    }
    const Watched watched = tally_.begin(*job.run);
    active_.push_back({job, WorkerProcess(command, study_.folder.run(job.run->id).log()), watched});
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

  /// Decides what happens to a run whose worker has ended.
  void settle(Job job, const WorkerExit& end) {
    const StudyRunFolder folder = study_.folder.run(job.run->id);
    for (const std::string& note : notes_in(folder.log())) {
      tally_.note(fmt::format("run {} ({}): {}", job.run->id, job.run->label(), note));
    }
    const RunState state = read_run_state(folder);
    if (is_done(state.status)) return tally_.end(*job.run, state);
    if (stopping()) return;
    if (FileLock::holder(folder.claim())) return queue_.push_back(job);  // another has it
    const std::string reason = end.code == 0 && end.signal == 0
                                   ? std::string("the worker ended without a record")
                                   : describe(end, folder.log());
    ++job.attempts;
    const bool may_repeat = end.signal != 0 || end.code == kStopped;
    if (may_repeat && job.attempts < kAttempts) {
      tally_.note(fmt::format("run {} ({}): {}; it continues from its checkpoint", job.run->id,
                              job.run->label(), reason));
      queue_.push_front(job);
      return;
    }
    if (state.status != RunStatus::failed || end.signal != 0) write_failure(folder, reason);
    tally_.end(*job.run, read_run_state(folder));
  }

  std::vector<RunningModel> running() const {
    std::vector<RunningModel> models;
    for (const Active& active : active_) models.push_back(active.watched.look(study_.folder));
    return models;
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
  Tally tally_;
  std::deque<Job> queue_;
  std::list<Active> active_;
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
