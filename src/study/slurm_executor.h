// Runs as tasks of Slurm array jobs: each task works through a batch of runs with the same worker
// processes as the local executor, so the records are the same.
//
// The queue is never trusted alone. At every look, first the queue is read, then the run folders:
//   done      it has a record, whatever the queue says
//   covered   a worker holds its claim, or a pending or running task names it
//   missing   neither: its task was killed, lost by the controller or given up; it is submitted
//             again, five times at most
// A task that Slurm reports as running but whose runs have no worker is cancelled after a while.
// While the controller does not answer, nothing is submitted. Claims keep a task that Slurm starts
// twice from training anything twice.
#pragma once

#include "study/executor.h"
#include "study/slurm_queue.h"

namespace fathom::study {

ExecutorResult run_slurm(const Study& study, const std::vector<const PlannedRun*>& runs,
                         const SlurmOptions& options, const ExecutorEvents& events);

/// Cuts runs into tasks: `runs_per_task` each, or about ten minutes of one core's work.
std::vector<std::vector<std::string>> make_tasks(const std::vector<const PlannedRun*>& runs,
                                                 std::int64_t runs_per_task);

}  // namespace fathom::study
