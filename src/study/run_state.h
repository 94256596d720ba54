// What a run's folder says about it. The folder is the truth; every index is made from it.
//
//   record.json      it ended: finished, stopped early, or diverged (a result with a reason)
//   failed.json      its last worker could not go on; running the study again tries once more
//   claim (locked)   a worker is at it
//   metrics.jsonl    it was begun
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "train/run.h"

namespace fathom::study {

enum class RunStatus : std::uint8_t {
  pending,
  running,
  interrupted,
  finished,
  early_stopped,
  diverged,
  failed
};
std::string to_string(RunStatus status);
/// It has a record and is not run again.
bool is_done(RunStatus status);

struct RunState {
  RunStatus status = RunStatus::pending;
  std::string reason;
  std::optional<train::RunRecord> record;  // when done
  bool broken_record = false;              // record.json is there but is none
};

RunState read_run_state(const std::filesystem::path& run_folder);

/// The last lines of metrics.jsonl: how far a run is.
struct RunTail {
  std::int64_t step = 0;
  double loss = 0;       // of the last training step
  double eval_loss = 0;  // last held-out loss; 0 when there was none
};
RunTail read_run_tail(const std::filesystem::path& run_folder);

/// Why the run stands still; replaces an earlier reason.
void write_failure(const std::filesystem::path& run_folder, const std::string& reason);
void clear_failure(const std::filesystem::path& run_folder);

std::filesystem::path claim_path(const std::filesystem::path& run_folder);

}  // namespace fathom::study
