// The training runs of an experiment as tasks of Slurm array jobs, by the executor of studies.
//
// A lab's directory is laid out like a study's, so its runs are trained there and the parts then
// find their records: the result of a run does not depend on who trained it.
#pragma once

#include <vector>

#include "lab/frame/records.h"
#include "study/executor.h"
#include "study/slurm_queue.h"

namespace fathom::lab {

/// Trains what has neither a record nor a finished part. Parts that train nothing are left alone.
/// DataError when a run failed for good, StoppedError when it was stopped.
void train_on_slurm(const Setup& setup, const std::vector<Part>& parts, const LabRecords& records,
                    const study::SlurmOptions& options, const study::ExecutorEvents& events);

}  // namespace fathom::lab
