// A study: its folder, its spec and the runs they make; opening one to read, beginning one to
// train.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/file_lock.h"
#include "data/prepare.h"
#include "study/planned_run.h"
#include "study/study_folder.h"

namespace fathom::study {

struct Study {
  StudyFolder folder;  // absolute
  StudySpec spec;
  std::vector<PlannedRun> runs;
  bool has_tokens = false;  // runs have ids

  const PlannedRun* find(const std::string& id) const;
  std::vector<const PlannedRun*> all_runs() const;
};

/// For looking at: nothing is written. DataError when there is no study.
Study open_study(const std::filesystem::path& directory);

/// A directory of runs that were planned one by one, such as a lab's: every folder that has a spec
/// is a run. There is no study spec.
Study open_run_folders(const std::filesystem::path& directory);

/// Makes the directory if needed and takes its lock. ConfigError, naming the holder, while another
/// command runs the study; DataError when the directory cannot be written.
FileLock lock_study(const std::filesystem::path& directory, const std::string& what);

/// Under the lock: stores the spec (the stored one when none is given), prepares or checks the
/// tokens and plans the runs. A new spec may change grid, budget and training; runs that it still
/// names stay valid. DeviceError when the device is not there.
Study begin_study(const std::filesystem::path& directory, const std::optional<StudySpec>& given,
                  const data::PrepareProgress& progress = {});

/// Plans the runs again: those of the design's rounds where there are any, else the grid's.
void plan_again(Study& study);

/// Asks the process that runs the study on this machine to checkpoint and end, and waits for it.
/// ConfigError when there is none here, StoppedError when it is not done in time.
void stop_study(const std::filesystem::path& directory, double wait_seconds);

/// What the prepared tokens of a study determine about its runs; nothing before they are prepared.
std::optional<TokenFacts> read_token_facts(const StudyFolder& folder);

/// Writes the spec of a run where it is missing.
void prepare_run_folder(const Study& study, const PlannedRun& run);

}  // namespace fathom::study
