// What a run writes into its checkpoint beside the tensors: enough to go on as if it had not
// stopped, and to write the record when only that was missing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "train/run_record.h"

namespace fathom::train {

struct CheckpointNotes {
  std::uint64_t metrics_bytes = 0;  // how much of metrics.jsonl belongs to the checkpoint
  double best_loss = 0;
  std::int64_t stale = 0;  // evaluations since the best one
  std::string watch;       // DivergenceWatch::save
  double final_loss = 0, final_bits_per_byte = 0;
  std::string reason;
  std::optional<RunStatus> outcome;  // once the run has come to its end
  std::string spec;                  // as TOML, for people; not read back

  std::map<std::string, std::string> to_metadata() const;
  /// DataError, naming `path`, when one is missing; older checkpoints have no outcome.
  static CheckpointNotes from_metadata(const std::map<std::string, std::string>& metadata,
                                       const std::filesystem::path& path);
};

/// The notes of a checkpoint file.
CheckpointNotes read_checkpoint_notes(const std::filesystem::path& path);

}  // namespace fathom::train
