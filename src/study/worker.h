// One run of a study in its folder, as a worker process does it: claim, train, then write a record
// or a reason.
//
// The claim is a lock that dies with the process, so a run is never trained twice at once, on one
// machine or on many that share the directory, and nothing is left behind by a kill.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "train/run_record.h"

namespace fathom::study {

struct WorkerOptions {
  std::filesystem::path directory;  // of the study
  std::string id;
  std::int64_t stem_step = 0;  // keep a stem for a longer run
  std::string stem_from;       // start from the stem of this run, where it has one
  std::function<bool()> stop;  // asked by any thread
  std::function<void(const std::string&)> note;  // what was found damaged, and what is done
};

/// Trains to the end. StoppedError when stop() asked for it (the checkpoint is written) or when
/// another worker holds the run. Any other Error is also written to the run's folder.
train::RunRecord run_worker(const WorkerOptions& options);

}  // namespace fathom::study
