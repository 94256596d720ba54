// What a run writes into its checkpoint alongside the tensors: enough to continue as if it had not
// stopped, and to write the record when only that was missing. Every column of the record is there
// (RunRecord::visit_columns), under its name in record.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "train/run_record.h"

namespace fathom::train {

struct CheckpointNotes {
  std::uint64_t metrics_bytes = 0;  // how much of metrics.jsonl belongs to the checkpoint
  std::int64_t stale = 0;           // evaluations since the best one
  std::string watch;                // DivergenceWatch::save
  RunRecord record;                 // so far; its status is done once the run has ended
  std::string spec;                 // as TOML, for people; not read back

  std::map<std::string, std::string> to_metadata() const;
  /// DataError, naming `path`, when a note is missing. Columns that a checkpoint of an older
  /// version lacks keep the values of `record`.
  static CheckpointNotes from_metadata(const std::map<std::string, std::string>& metadata,
                                       const std::filesystem::path& path, RunRecord record = {});
};

/// The notes of a checkpoint file.
CheckpointNotes read_checkpoint_notes(const std::filesystem::path& path);

}  // namespace fathom::train
