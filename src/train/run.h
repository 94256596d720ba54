// A run in its folder (train/run_folder.h), from the first step to the record.
//
// The checkpoint records how far metrics.jsonl belongs to it, so a resumed run cuts off what came
// after and both files agree. A diverged run is a finished run with that verdict. A checkpoint that
// is damaged or belongs to another run is put aside; the run continues from the one before it, or
// starts over, and ends with the same bits.
#pragma once

#include <filesystem>
#include <functional>

#include "train/run_record.h"
#include "train/trainer.h"

namespace fathom::train {

struct RunProgress {
  std::int64_t step = 0, steps = 0;
  StepResult last;
  double tokens_per_second = 0;
  double flops_per_second = 0;
  double seconds_left = 0;
};

struct RunOptions {
  std::filesystem::path directory;
  bool resume = false;
  bool claimed = false;        // the caller holds the run's claim already
  std::int64_t stem_step = 0;  // keep a second checkpoint, the stem, made after this step
  std::string stem_from;       // id of the run whose stem may be the checkpoint here
  std::function<void(const RunProgress&)> on_step;
  std::function<void(std::int64_t step, const Evaluation&)> on_evaluation;
  std::function<void(const std::string&)> on_note;  // what was found damaged, and what is done
  std::function<bool()> stop;  // asked after every step; true: checkpoint and return
  /// The same, asked by any thread in the middle of a step: a step that is still running a second
  /// after the first true is abandoned, and the checkpoint is of the step before.
  std::function<bool()> stop_in_step;
  /// Steps that may be in flight while the loss of an earlier one is examined: a divergence or a
  /// stop is noticed that much later, and nothing else changes. -1: a few on a GPU, none elsewhere.
  int steps_ahead = -1;
};

/// Trains to the end, or to a stop. ConfigError when the directory holds another run, one that
/// another process is training, or an unfinished one and resume is not asked for. A finished run is
/// not repeated: its record is read. The record of a stopped run is `interrupted` and not written.
RunRecord run_training(const RunSpec& spec, const data::TokenSet& tokens,
                       const RunOptions& options);
/// The same for a spec with a task, which reads no tokens.
RunRecord run_training(const RunSpec& spec, const RunOptions& options);

}  // namespace fathom::train
