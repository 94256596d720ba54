// One model in training: its executor, the feed it learns from and the steps it has done.
//
// The state is the parameters, AdamW's moments and the number of steps done; everything else is
// computed from the spec, so a trainer restored from a checkpoint continues bit for bit.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/counts.h"
#include "data/token_set.h"
#include "train/evaluation.h"
#include "train/feed.h"
#include "train/run_spec.h"

namespace fathom::engine {
struct StepScalars;
}

namespace fathom::train {

struct StepResult {
  double loss = 0;           // mean over the targets of the step that count, nats
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;
};

/// The spec with the vocabulary taken from the tokens where it was left open. ConfigError when the
/// model's is too small.
RunSpec resolve(const RunSpec& spec, const data::TokenSet& tokens);

class Trainer {
 public:
  /// `spec` must be resolved; `tokens` must outlive the trainer. Null: the spec has a task.
  Trainer(const RunSpec& spec, const data::TokenSet* tokens);
  Trainer(const RunSpec& spec, const data::TokenSet& tokens) : Trainer(spec, &tokens) {}
  ~Trainer();

  /// Steps may be started before earlier ones are finished, so that a device need not wait for the
  /// host to look at their losses; they are finished in order. State may be read or written only
  /// when none is pending. `stop` is asked while the gradients are computed
  /// (engine::Executor::hear): when a StoppedError comes out of it, the step has not been started
  /// and the state is as it was.
  void start_step(const std::function<bool()>& stop = {});
  StepResult finish_step();
  StepResult step() {
    start_step();
    return finish_step();
  }
  /// Drops the pending steps; only the parameters keep their effect.
  void forget_pending();
  Evaluation evaluate(const std::function<bool()>& stop = {});
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
  void compute_gradients(engine::StepScalars& scalars, const std::function<bool()>& stop);

  RunSpec spec_;
  model::OptimiserSettings optimiser_;
  double learning_rate_;
  std::unique_ptr<const model::Transformer> model_;
  std::unique_ptr<engine::Executor> executor_;
  std::unique_ptr<Feed> feed_;
  std::int64_t steps_done_ = 0;  // and finished
  std::deque<double> pending_;   // learning rates of the steps in flight
};

}  // namespace fathom::train
