#include "study/slurm_executor.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <span>
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
  bool seen = false;  // in the queue, since it was last submitted
  Clock::time_point submitted;
  std::optional<Watched> watched;  // since a worker was first seen
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
        queue_(study.folder, options, events.stop),
        tally_(study, runs, events) {
    for (const PlannedRun* run : tally_.open()) {
      prepare_run_folder(study, *run);
      clear_failure(study.folder.run(run->id));
      tracked_.push_back({.run = run, .submitted = {}, .watched = {}});
    }
  }

  ExecutorResult go() {
    while (tally_.left() > 0) {
      if (tally_.stop_asked()) return stop();
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
    return tally_.result();
  }

 private:
  void tell_once(const std::string& text) {
    if (told_ != text) tally_.note(text);
    told_ = text;
  }

  /// Held tasks never start again by themselves, so they are cancelled; those with a begin time
  /// wait for no reason.
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

  /// Reads every open run's folder, after the queue, and submits what no worker is working on.
  void look(const std::optional<std::vector<SlurmTask>>& tasks) {
    std::set<std::string> covered;
    if (tasks) covered = covered_runs(*tasks);
    std::vector<Tracked*> missing;
    running_.clear();
    for (Tracked& tracked : tracked_) {
      if (tracked.ended) continue;
      const std::string& id = tracked.run->id;
      tracked.seen |= covered.contains(id);
      const RunState state = read_run_state(study_.folder.run(id));
      if (is_done(state.status) || (state.status == RunStatus::failed && !covered.contains(id))) {
        end(tracked, state);
      } else if (state.status == RunStatus::running) {
        if (!tracked.watched) tracked.watched = tally_.begin(*tracked.run);
        running_.push_back(tracked.watched->look(study_.folder));
      } else if (tasks && !covered.contains(id) && !may_still_appear(tracked)) {
        missing.push_back(&tracked);
      }
    }
    if (!missing.empty()) submit(missing);
  }

  /// It was submitted a moment ago, and the queue, which may be cached, does not show it yet.
  bool may_still_appear(const Tracked& tracked) const {
    if (tracked.submissions == 0 || tracked.seen) return false;
    const std::chrono::duration<double> since = Clock::now() - tracked.submitted;
    return since.count() < options_.grace_seconds;
  }

  std::set<std::string> covered_runs(const std::vector<SlurmTask>& tasks) {
    std::set<std::string> covered;
    for (const SlurmTask& task : tasks) {
      if (task.state == "RUNNING" && stalled(task)) {
        tell_once(fmt::format(
            "task {} makes no progress; it is cancelled and its runs are submitted again",
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
      const StudyRunFolder folder = study_.folder.run(id);
      if (FileLock::holder(folder.claim())) steps = -1;  // a worker is alive
      if (steps < 0) break;
      steps += train::read_run_tail(folder.metrics()).step;
    }
    Pulse& pulse = pulses_[task.id];
    if (steps < 0 || steps != pulse.steps) pulse = {steps, Clock::now()};
    return std::chrono::duration<double>(Clock::now() - pulse.at).count() > options_.stall_seconds;
  }

  void end(Tracked& tracked, const RunState& state) {
    tracked.ended = true;
    tally_.end(*tracked.run, state);
  }

  void submit(const std::vector<Tracked*>& missing) {
    std::vector<const PlannedRun*> wanted;
    for (Tracked* tracked : missing) {
      if (tracked->submissions == kSubmissions) {
        const StudyRunFolder folder = study_.folder.run(tracked->run->id);
        write_failure(folder, fmt::format("its Slurm task was lost {} times; see {}", kSubmissions,
                                          study_.folder.slurm().string()));
        end(*tracked, read_run_state(folder));
        continue;
      }
      wanted.push_back(tracked->run);
    }
    if (wanted.empty()) return;
    const auto tasks = make_tasks(wanted, options_.runs_per_task);
    for (std::size_t first = 0; first < tasks.size(); first += kArrayLimit) {
      const auto part =
          std::span(tasks).subspan(first, std::min(kArrayLimit, tasks.size() - first));
      const auto job = queue_.submit(part, wanted.front()->spec.threads);
      if (!job) {
        tell_once("the Slurm controller does not answer (" + queue_.error() + "); waiting");
        return;
      }
      mark_submitted(part, missing);
      tally_.note(fmt::format("Slurm job {}: {} tasks, {} runs", *job, part.size(), count(part)));
    }
  }

  static void mark_submitted(std::span<const std::vector<std::string>> tasks,
                             const std::vector<Tracked*>& runs) {
    std::set<std::string> submitted;
    for (const auto& ids : tasks) submitted.insert(ids.begin(), ids.end());
    for (Tracked* tracked : runs) {
      if (!submitted.contains(tracked->run->id)) continue;
      ++tracked->submissions;
      tracked->seen = false;
      tracked->submitted = Clock::now();
    }
  }

  static std::size_t count(std::span<const std::vector<std::string>> tasks) {
    std::size_t runs = 0;
    for (const auto& task : tasks) runs += task.size();
    return runs;
  }

  void wait() {
    const auto until = Clock::now() + std::chrono::duration<double>(options_.poll_seconds);
    tally_.tick(running_, "Slurm");
    while (Clock::now() < until && !tally_.stop_asked()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  /// Tasks get SIGTERM and write their checkpoints; Slurm kills them only after its KillWait.
  ExecutorResult stop() {
    tally_.stopped();
    queue_.stopping();
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
    return tally_.result();
  }

  const Study& study_;
  const SlurmOptions& options_;
  SlurmQueue queue_;
  Tally tally_;
  std::vector<Tracked> tracked_;
  std::map<std::string, Pulse> pulses_;
  std::set<std::string> cancelled_;
  std::vector<RunningModel> running_;
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
