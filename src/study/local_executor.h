// Runs as worker processes on this machine: `program study worker DIR ID`, `jobs` at once.
//
// Processes, so that a crash takes down one run and not the study. A worker that dies by a signal
// is restarted from its checkpoint, three times in all; one that reports why it cannot continue is
// not. Workers die with their parent (checkpoint first), even when it is killed with -9.
#pragma once

#include "study/executor.h"

namespace fathom::study {

struct LocalOptions {
  int jobs = 1;
  std::filesystem::path program;  // the fathom binary
};

/// The binary this process runs.
std::filesystem::path own_program();

ExecutorResult run_local(const Study& study, const std::vector<const PlannedRun*>& runs,
                         const LocalOptions& options, const ExecutorEvents& events);

}  // namespace fathom::study
