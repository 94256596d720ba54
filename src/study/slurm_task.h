// One task of a Slurm array job: the runs of its line, one after another.
//
// Before the task's time is up, Slurm sends SIGUSR1: the task checkpoints and asks to be queued
// again.
#pragma once

#include <filesystem>
#include <functional>

#include "study/executor.h"

namespace fathom::study {

struct SlurmTaskOptions {
  std::filesystem::path directory;    // of the study
  std::filesystem::path file;         // of the submission: runs of every task, a line each
  std::filesystem::path program;      // the fathom binary
  std::function<bool()> out_of_time;  // whether the stop was Slurm's warning
};

/// The environment says which task this is; ConfigError when it does not. StoppedError when it was
/// stopped, with checkpoints.
void run_slurm_task(const SlurmTaskOptions& options, const ExecutorEvents& events);

}  // namespace fathom::study
