// The little of Slurm that Fathom uses: sbatch, squeue, scancel, scontrol.
//
// A submission is one array job named fathom-TOKEN; the study's slurm folder has TOKEN.tasks, a
// line of run ids for each of its tasks. So the name in the queue identifies the runs a task
// covers, even to a command that did not submit it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "study/study_folder.h"
#include "study/subprocess.h"

namespace fathom::study {

struct SlurmOptions {
  std::string partition;
  std::int64_t runs_per_task = 0;           // 0: about ten minutes of work
  std::int64_t max_tasks = 0;               // at once; 0: as many as the cluster gives
  std::vector<std::string> sbatch_options;  // passed on, after Fathom's own
  std::filesystem::path program;            // the fathom binary, reachable from the nodes
  double poll_seconds = 2;
  double stall_seconds = 120;  // a task that "runs" but does nothing for this long is cancelled
  double grace_seconds = 30;   // for the queue to show what was submitted
  double answer_seconds = 30;  // for Slurm's own programs to answer
};

struct SlurmTask {
  std::string id;     // "1234_7"
  std::string token;  // of the submission
  std::size_t index = 0;
  std::string state;  // PENDING, RUNNING, ...
  std::string reason;
};

class SlurmQueue {
 public:
  /// `stop`: true ends the wait for a hanging Slurm program.
  SlurmQueue(StudyFolder folder, SlurmOptions options, std::function<bool()> stop);

  /// Submits tasks of the given runs; the job's id, or nothing when the controller does not answer.
  /// DeviceError in Slurm's own words when it refuses the job.
  std::optional<std::string> submit(std::span<const std::vector<std::string>> tasks,
                                    std::int64_t cpus);
  /// Tasks of this study that the queue knows; nothing when the controller does not answer.
  std::optional<std::vector<SlurmTask>> tasks();
  /// Run ids of a task.
  std::vector<std::string> runs_of(const SlurmTask& task);
  void cancel(const std::string& task_or_job) const;
  /// A requeued task would wait two minutes for no reason.
  void start_now(const SlurmTask& task) const;
  const std::string& error() const { return error_; }
  /// From now on a request to stop no longer ends a wait: it is being carried out.
  void stopping() { patience_ = {std::min(patience_.seconds, 10.0), {}}; }

 private:
  std::filesystem::path task_file(const std::string& token) const;
  StudyFolder folder_;
  SlurmOptions options_;
  Patience patience_;
  std::string error_;
};

/// The ids of task `index` of a file that submit() wrote. DataError when there is no such line.
std::vector<std::string> read_task(const std::filesystem::path& file, std::size_t index);

}  // namespace fathom::study
