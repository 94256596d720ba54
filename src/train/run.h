// A run in its directory: spec.toml, metrics.jsonl (append only), checkpoint/state.safetensors,
// record.json (written last: its presence means the run is finished).
//
// The checkpoint names how far metrics.jsonl belongs to it, so a resumed run cuts off what came
// after and both files tell one story. A diverged run is a finished run with that verdict.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "train/trainer.h"

namespace fathom::train {

enum class Outcome : std::uint8_t { finished, early_stopped, diverged, interrupted };
std::string to_string(Outcome outcome);

struct RunProgress {
  std::int64_t step = 0, steps = 0;
  StepResult last;
  double tokens_per_second = 0;
  double flops_per_second = 0;
  double seconds_left = 0;
};

struct RunRecord {
  std::string id;
  Outcome outcome = Outcome::finished;
  std::string reason;  // of a divergence
  std::int64_t layers = 0, width = 0, heads = 0;
  std::uint64_t seed = 0;
  std::int64_t parameters = 0;
  std::int64_t non_embedding = 0;  // without token table, positions and an untied head
  std::int64_t steps = 0;
  std::int64_t tokens = 0;
  double final_loss = 0, best_loss = 0;  // held out, nats a token
  double final_bits_per_byte = 0;
  double flops = 0;    // of the training steps, masked scores not counted
  double seconds = 0;  // of this process, which did timed_steps of the steps
  std::int64_t timed_steps = 0;
  std::int64_t memory_bytes = 0;
};

struct RunOptions {
  std::filesystem::path directory;
  bool resume = false;
  std::int64_t stem_step = 0;  // keep a second checkpoint, checkpoint/stem, made after this step
  std::function<void(const RunProgress&)> on_step;
  std::function<void(std::int64_t step, const Evaluation&)> on_evaluation;
  std::function<bool()> stop;  // asked after every step; true: checkpoint and return
  /// Steps that may be on their way while the loss of an earlier one is looked at: a divergence or
  /// a stop is noticed that much later, and nothing else changes. -1: a few on a GPU, none else.
  int steps_ahead = -1;
};

/// Trains to the end, or to a stop. ConfigError when the directory holds another run, or an
/// unfinished one and resume is not asked for. A finished run is not repeated: its record is read.
RunRecord run_training(const RunSpec& spec, const data::TokenSet& tokens,
                       const RunOptions& options);

/// A record.json; DataError when it is none.
RunRecord read_run_record(const std::filesystem::path& path);

/// Where a run keeps its checkpoint and the stem that RunOptions::stem_step asks for.
std::filesystem::path checkpoint_path(const std::filesystem::path& directory);
std::filesystem::path stem_path(const std::filesystem::path& directory);

}  // namespace fathom::train
