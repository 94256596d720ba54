#include "study/slurm_executor.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "core/error.h"

namespace fathom::study {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSubmissions = 5;            // of one run
constexpr std::size_t kArrayLimit = 1000;  // Slurm's own default is 1001
constexpr double kFlopsPerSecond = 20e9;   // of one core, to size tasks only
constexpr double kTaskSeconds = 600;
constexpr std::size_t kTaskRuns = 50;

struct Tracked {
  const PlannedRun* run = nullptr;
  bool ended = false;
  int submissions = 0;
  bool seen_running = false;
  std::int64_t first_step = 0;
  Clock::time_point since;
};

/// When a task that claims to run last showed a sign of life.
struct Pulse {
  std::int64_t steps = -1;
  Clock::time_point at;
};

class SlurmExecutor {
 public:
  SlurmExecutor(const Study& study, const std::vector<const PlannedRun*>& runs,
                const SlurmOptions& options, const ExecutorEvents& events)
      : study_(study),
        options_(options),
        events_(events),
        queue_(study.directory, options),
        pace_(runs) {
    for (const PlannedRun* run : runs) {
      Tracked tracked;
      tracked.run = run;
      if (is_done(read_run_state(study.run_folder(run->id)).status)) {
        tracked.ended = true;
        ++result_.done;
        pace_.begin(*run, run->spec.schedule.steps);
        pace_.finish(*run);
      } else {
        prepare_run_folder(study, *run);
        clear_failure(study.run_folder(run->id));
      }
      order_.push_back(run->id);
      tracked_[run->id] = tracked;
    }
  }

  ExecutorResult go() {
    while (open_runs() > 0) {
      if (events_.stop && events_.stop()) return stop();
      const auto tasks = queue_.tasks();
      if (!tasks) {
        tell_once("the Slurm controller does not answer (" + queue_.error() + "); waiting");
      } else {
        told_.clear();
        nurse(*tasks);
      }
      look(tasks);
      wait();
    }
    return result_;
  }

 private:
  std::size_t open_runs() const { return order_.size() - result_.done - result_.failed; }

  void tell_once(const std::string& text) {
    if (told_ == text) return;
    told_ = text;
    if (events_.note) events_.note(text);
  }

  /// Held tasks never start again by themselves; those with a begin time wait for nothing.
  void nurse(const std::vector<SlurmTask>& tasks) {
    for (const SlurmTask& task : tasks) {
      if (task.state != "PENDING") continue;
      if (task.reason == "BeginTime") queue_.start_now(task);
      if (task.reason.find("held") != std::string::npos ||
          task.reason.find("Held") != std::string::npos) {
        queue_.cancel(task.id);
      }
    }
  }

  /// Reads every open run's folder, after the queue, and submits what nobody works on.
  void look(const std::optional<std::vector<SlurmTask>>& tasks) {
    std::set<std::string> covered;
    if (tasks) covered = covered_runs(*tasks);
    std::vector<const PlannedRun*> missing;
    running_.clear();
    for (const std::string& id : order_) {
      Tracked& tracked = tracked_[id];
      if (tracked.ended) continue;
      const RunState state = read_run_state(study_.run_folder(id));
      if (is_done(state.status) || (state.status == RunStatus::failed && !covered.contains(id))) {
        end(tracked, state);
      } else if (state.status == RunStatus::running) {
        note_running(tracked);
      } else if (tasks && !covered.contains(id)) {
        missing.push_back(tracked.run);
      }
    }
    if (!missing.empty()) submit(missing);
  }

  std::set<std::string> covered_runs(const std::vector<SlurmTask>& tasks) {
    std::set<std::string> covered;
    for (const SlurmTask& task : tasks) {
      if (task.state == "RUNNING" && stalled(task)) {
        tell_once(
            fmt::format("task {} does nothing; it is cancelled and its runs are submitted "
                        "again",
                        task.id));
        queue_.cancel(task.id);
        continue;
      }
      for (const std::string& id : queue_.runs_of(task)) covered.insert(id);
    }
    return covered;
  }

  bool stalled(const SlurmTask& task) {
    std::int64_t steps = 0;
    for (const std::string& id : queue_.runs_of(task)) {
      const auto folder = study_.run_folder(id);
      if (FileLock::holder(claim_path(folder))) steps = -1;  // a worker lives
      if (steps < 0) break;
      steps += read_run_tail(folder).step;
    }
    Pulse& pulse = pulses_[task.id];
    if (steps < 0 || steps != pulse.steps) pulse = {steps, Clock::now()};
    return std::chrono::duration<double>(Clock::now() - pulse.at).count() > options_.stall_seconds;
  }

  void note_running(Tracked& tracked) {
    RunningModel model;
    model.run = tracked.run;
    model.tail = read_run_tail(study_.run_folder(tracked.run->id));
    if (!tracked.seen_running) {
      tracked.seen_running = true;
      tracked.first_step = model.tail.step;
      tracked.since = Clock::now();
      pace_.begin(*tracked.run, model.tail.step);
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - tracked.since).count();
    const std::int64_t steps = model.tail.step - tracked.first_step;
    if (steps > 0 && seconds > 0) {
      model.tokens_per_second =
          static_cast<double>(steps * tracked.run->spec.tokens_per_step()) / seconds;
    }
    running_.push_back(model);
  }

  void end(Tracked& tracked, const RunState& state) {
    tracked.ended = true;
    ++(is_done(state.status) ? result_.done : result_.failed);
    pace_.finish(*tracked.run);
    if (events_.ended) events_.ended(*tracked.run, state);
  }

  void submit(const std::vector<const PlannedRun*>& missing) {
    std::vector<const PlannedRun*> wanted;
    for (const PlannedRun* run : missing) {
      Tracked& tracked = tracked_[run->id];
      if (tracked.submissions == kSubmissions) {
        write_failure(study_.run_folder(run->id),
                      fmt::format("its Slurm task was lost {} times; see {}", kSubmissions,
                                  (study_.directory / "slurm").string()));
        end(tracked, read_run_state(study_.run_folder(run->id)));
        continue;
      }
      ++tracked.submissions;
      wanted.push_back(run);
    }
    const auto tasks = make_tasks(wanted, options_.runs_per_task);
    for (std::size_t first = 0; first < tasks.size(); first += kArrayLimit) {
      const std::size_t last = std::min(tasks.size(), first + kArrayLimit);
      const std::vector<std::vector<std::string>> part(
          tasks.begin() + static_cast<std::ptrdiff_t>(first),
          tasks.begin() + static_cast<std::ptrdiff_t>(last));
      const std::string job = queue_.submit(part, wanted.front()->spec.threads);
      if (events_.note) {
        events_.note(fmt::format("Slurm job {}: {} tasks, {} runs", job, part.size(), count(part)));
      }
    }
  }

  static std::size_t count(const std::vector<std::vector<std::string>>& tasks) {
    std::size_t runs = 0;
    for (const auto& task : tasks) runs += task.size();
    return runs;
  }

  void wait() {
    const auto until = Clock::now() + std::chrono::duration<double>(options_.poll_seconds);
    if (events_.tick) events_.tick(snapshot());
    while (Clock::now() < until && !(events_.stop && events_.stop())) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  Snapshot snapshot() const {
    Snapshot snapshot;
    snapshot.total = order_.size();
    snapshot.done = result_.done;
    snapshot.failed = result_.failed;
    snapshot.running = running_;
    snapshot.note = "Slurm";
    pace_.fill(snapshot);
    return snapshot;
  }

  /// Tasks get SIGTERM and write their checkpoints; Slurm kills them only after its KillWait.
  ExecutorResult stop() {
    result_.stopped = true;
    constexpr std::chrono::seconds kPatience{60};
    const auto end_at = Clock::now() + kPatience;
    while (Clock::now() < end_at) {
      const auto tasks = queue_.tasks();
      if (tasks && tasks->empty()) break;
      std::set<std::string> jobs;
      for (const SlurmTask& task : tasks.value_or(std::vector<SlurmTask>{})) {
        jobs.insert(task.id.substr(0, task.id.find('_')));
      }
      for (const std::string& job : jobs) {
        if (cancelled_.insert(job).second) queue_.cancel(job);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    return result_;
  }

  const Study& study_;
  const SlurmOptions& options_;
  const ExecutorEvents& events_;
  SlurmQueue queue_;
  StudyPace pace_;
  std::vector<std::string> order_;
  std::map<std::string, Tracked> tracked_;
  std::map<std::string, Pulse> pulses_;
  std::set<std::string> cancelled_;
  std::vector<RunningModel> running_;
  ExecutorResult result_;
  std::string told_;
};

}  // namespace

std::vector<std::vector<std::string>> make_tasks(const std::vector<const PlannedRun*>& runs,
                                                 std::int64_t runs_per_task) {
  std::vector<std::vector<std::string>> tasks;
  double seconds = 0;
  for (const PlannedRun* run : runs) {
    const bool full =
        !tasks.empty() &&
        (runs_per_task > 0 ? std::ssize(tasks.back()) >= runs_per_task
                           : seconds >= kTaskSeconds || tasks.back().size() >= kTaskRuns);
    if (tasks.empty() || full) {
      tasks.emplace_back();
      seconds = 0;
    }
    tasks.back().push_back(run->id);
    seconds += run->flops / kFlopsPerSecond;
  }
  return tasks;
}

ExecutorResult run_slurm(const Study& study, const std::vector<const PlannedRun*>& runs,
                         const SlurmOptions& options, const ExecutorEvents& events) {
  return SlurmExecutor(study, runs, options, events).go();
}

}  // namespace fathom::study
