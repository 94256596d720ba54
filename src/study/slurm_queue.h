// The little of Slurm that Fathom uses: sbatch, squeue, scancel, scontrol.
//
// A submission is one array job named fathom-TOKEN; the study's slurm folder has TOKEN.tasks, a
// line of run ids for each of its tasks. So the name in the queue says which runs a task covers,
// also to a command that did not submit it.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "study/study_folder.h"

namespace fathom::study {

struct SlurmOptions {
  std::string partition;
  std::int64_t runs_per_task = 0;           // 0: about ten minutes of work
  std::int64_t max_tasks = 0;               // at once; 0: as many as the cluster gives
  std::vector<std::string> sbatch_options;  // handed on, after Fathom's own
  std::filesystem::path program;            // the fathom binary, reachable from the nodes
  double poll_seconds = 2;
  double stall_seconds = 120;  // a task that "runs" and does nothing so long is cancelled
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
  SlurmQueue(StudyFolder folder, SlurmOptions options);

  /// Submits tasks of the given runs; the job's id. DeviceError in Slurm's own words.
  std::string submit(std::span<const std::vector<std::string>> tasks, std::int64_t cpus);
  /// Tasks of this study that the queue knows; nothing when the controller does not answer.
  std::optional<std::vector<SlurmTask>> tasks();
  /// Run ids of a task.
  std::vector<std::string> runs_of(const SlurmTask& task);
  void cancel(const std::string& task_or_job) const;
  /// A requeued task would wait two minutes for no reason.
  void start_now(const SlurmTask& task) const;
  const std::string& error() const { return error_; }

 private:
  std::filesystem::path task_file(const std::string& token) const;
  StudyFolder folder_;
  SlurmOptions options_;
  std::string error_;
};

/// The ids of task `index` of a file that submit() wrote. DataError when there is no such line.
std::vector<std::string> read_task(const std::filesystem::path& file, std::size_t index);

}  // namespace fathom::study
