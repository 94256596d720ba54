// A study's directory:
//
//   study.toml     the spec, settings applied        lock       held by the running command
//   corpus.json    the text the tokens were made of  tokens/    the prepared corpus
//   runs/ID/       one folder a run, see train/run.h and study/run_state.h
//   study.db       index of the runs (SQLite)        points.csv finished runs, for fits
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/prepare.h"
#include "study/file_lock.h"
#include "study/planned_run.h"

namespace fathom::study {

struct Study {
  std::filesystem::path directory;  // absolute
  StudySpec spec;
  std::vector<PlannedRun> runs;
  bool has_tokens = false;  // runs have ids

  std::filesystem::path tokens() const { return directory / "tokens"; }
  std::filesystem::path run_folder(const std::string& id) const { return directory / "runs" / id; }
  const PlannedRun* find(const std::string& id) const;
};

/// For looking at: nothing is written. DataError when `directory` holds no study.
Study open_study(const std::filesystem::path& directory);

/// Makes the directory where needed and takes its lock. ConfigError, naming the holder, while
/// another command runs the study; DataError when the directory cannot be written.
FileLock lock_study(const std::filesystem::path& directory, const std::string& what);

/// Under the lock: stores the spec (the stored one when none is given), prepares or checks the
/// tokens and plans the runs. A new spec may change grid, budget and training; runs that it still
/// names stay valid. DeviceError when the device is not there.
Study begin_study(const std::filesystem::path& directory, const std::optional<StudySpec>& given,
                  const data::PrepareProgress& progress = {});

/// Writes spec.toml of a run where it is missing.
void prepare_run_folder(const Study& study, const PlannedRun& run);

std::filesystem::path study_lock_path(const std::filesystem::path& directory);

}  // namespace fathom::study
