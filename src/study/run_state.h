// What a run's folder says about it. The folder is the truth; every index is made from it.
//
//   the record       it ended: finished, stopped early, or diverged (a result with a reason)
//   the claim        a worker is training it
//   a failure        its last worker failed; running the study again tries once more
//   metrics          it was started
#pragma once

#include <optional>
#include <string>

#include "study/study_folder.h"
#include "train/run_record.h"

namespace fathom::study {

using train::RunStatus;

struct RunState {
  RunStatus status = RunStatus::pending;
  std::string reason;
  std::optional<train::RunRecord> record;  // when done
  std::string damage;                      // why the record that is there cannot be used
};

RunState read_run_state(const StudyRunFolder& run);

/// Why the run has stopped; replaces an earlier reason.
void write_failure(const StudyRunFolder& run, const std::string& reason);
void clear_failure(const StudyRunFolder& run);

}  // namespace fathom::study
