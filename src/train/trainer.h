// One model in training: its executor, the tokens it reads and the steps it has done.
//
// The state is the parameters, AdamW's moments and the number of steps done; everything else is
// computed from the spec, so a trainer restored from a checkpoint goes on bit for bit.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>

#include "core/counts.h"
#include "data/batch_sampler.h"
#include "data/evaluation_set.h"
#include "data/token_set.h"
#include "engine/executor.h"
#include "train/run_spec.h"

namespace fathom::train {

struct StepResult {
  double loss = 0;           // mean over the tokens of the step, nats
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;
};

struct Evaluation {
  double loss = 0;           // mean nats per token
  double bits_per_byte = 0;  // of text
};

/// Losses summed over all targets of the windows, in nats; whole batches of the model's size.
double summed_loss(const model::Transformer& model, engine::Executor& executor,
                   const data::EvaluationSet& windows);

/// The spec with the vocabulary taken from the tokens where it was left open. ConfigError when the
/// model's is too small.
RunSpec resolve(const RunSpec& spec, const data::TokenSet& tokens);

class Trainer {
 public:
  /// `spec` must be resolved; `tokens` must outlive the trainer.
  Trainer(const RunSpec& spec, const data::TokenSet& tokens);

  /// Steps may be started before earlier ones are finished, so that a device need not wait for the
  /// host to look at their losses; they are finished in their order. State may be read or written
  /// only when none is pending.
  void start_step();
  StepResult finish_step();
  StepResult step() {
    start_step();
    return finish_step();
  }
  /// Drops the pending steps; only the parameters keep their effect.
  void forget_pending();
  Evaluation evaluate();
  std::int64_t steps_done() const { return steps_done_; }
  std::int64_t steps_started() const { return steps_done_ + as_signed(pending_.size()); }
  const model::Transformer& model() const { return *model_; }
  engine::Executor& executor() { return *executor_; }

  /// One safetensors file that appears whole or not at all. `notes` travel in its metadata.
  void save(const std::filesystem::path& path, const std::map<std::string, std::string>& notes);
  /// Restores state and returns the notes. DataError when the file is damaged or belongs to another
  /// model; the state is then as it was.
  std::map<std::string, std::string> load(const std::filesystem::path& path);

 private:
  void write_batch(std::uint64_t draw);

  RunSpec spec_;
  model::OptimiserSettings optimiser_;
  double learning_rate_;
  std::unique_ptr<const model::Transformer> model_;
  std::unique_ptr<engine::Executor> executor_;
  const data::TokenFile& training_;
  data::BatchSampler sampler_;
  data::EvaluationSet evaluation_;
  std::uint64_t evaluation_bytes_;
  std::vector<std::int32_t> inputs_, targets_;
  std::vector<std::uint64_t> starts_;
  bool text_held_ = false;       // batches are cut where the model is
  std::int64_t steps_done_ = 0;  // and finished
  std::deque<double> pending_;   // learning rates of the steps on their way
};

}  // namespace fathom::train
