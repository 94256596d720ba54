#include "study/slurm_task.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/error.h"
#include "study/local_executor.h"
#include "study/slurm_queue.h"
#include "study/subprocess.h"

namespace fathom::study {

void run_slurm_task(const SlurmTaskOptions& options, const ExecutorEvents& events) {
  const char* index = std::getenv("SLURM_ARRAY_TASK_ID");
  const char* job = std::getenv("SLURM_ARRAY_JOB_ID");
  if (index == nullptr || job == nullptr) throw ConfigError("study task runs under Slurm only");
  const bool planned = std::filesystem::exists(StudyFolder(options.directory).spec());
  const Study study = planned ? open_study(options.directory) : open_run_folders(options.directory);
  std::vector<const PlannedRun*> runs;
  for (const std::string& id : read_task(options.file, std::strtoull(index, nullptr, 10))) {
    if (const PlannedRun* run = study.find(id)) runs.push_back(run);
  }
  const ExecutorResult result = run_local(study, runs, {1, options.program}, events);
  if (!result.stopped) return;
  if (options.out_of_time()) {
    run_program({"scontrol", "requeue", fmt::format("{}_{}", job, index)}, {30, {}});
  }
  throw StoppedError("stopped with checkpoints");
}

}  // namespace fathom::study
