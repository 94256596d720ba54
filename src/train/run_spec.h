// Everything that determines the result of a training run. Two runs with equal specs, equal tokens
// and equal thread counts give equal bits.
//
//   [model]  see model/model_spec.h        [data]  tokens = "FOLDER", or task = "k-hop"
//   [train]  steps, batch, learning_rate, ...
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/spec_keys.h"
#include "data/tasks/task_spec.h"
#include "engine/device.h"
#include "model/model_spec.h"
#include "model/step_settings.h"
#include "train/schedule.h"

namespace fathom::train {

inline constexpr double kMost = 0x1p40;  // of any count in a spec

/// The lists of keys below say what each value means, once.
struct RunSpec {
  model::ModelSpec model;

  std::string tokens;
  std::int64_t eval_tokens = 100'000;
  data::TaskSpec task;
  std::int64_t train_tokens = 0;

  std::int64_t batch = 16;
  std::int64_t accumulation = 1;
  double learning_rate = 1e-3;
  Schedule schedule;
  model::OptimiserSettings optimiser;
  double clip_norm = 1;
  std::uint64_t seed = 1;
  model::Precision precision = model::Precision::f32;
  engine::DeviceKind device = engine::DeviceKind::cpu;
  std::int64_t threads = 1;
  std::int64_t eval_every = 0;
  std::int64_t checkpoint_every = 0;
  std::int64_t patience = 0;
  std::int64_t base_batch_tokens = 0;
  std::int64_t base_total_tokens = 0;
  bool keep_best = false;

  bool has_task() const { return task.kind != data::TaskKind::none; }
  std::int64_t tokens_per_step() const { return batch * accumulation * model.context; }
  std::int64_t total_tokens() const { return tokens_per_step() * schedule.steps; }
  engine::Device place() const { return {.kind = device, .threads = static_cast<int>(threads)}; }
  /// Learning rate and AdamW settings after the batch and run-length correction.
  double corrected_learning_rate() const;
  model::OptimiserSettings corrected_optimiser() const;

  /// Every key of [data] and of [train] (core/spec_keys.h), in the order of the written file, which
  /// a run's id hashes. So the order stays, and a new key is only_when_set: runs from before it
  /// keep their ids.
  template <class Self, class Visitor>
  static void visit_data_keys(Self& spec, Visitor& key) {
    key("tokens", spec.tokens, "folder of a prepared corpus", {.only_when_set = true});
    key("eval_tokens", spec.eval_tokens, "held-out tokens read by every evaluation", {1, kMost});
    data::TaskSpec::visit_keys(spec.task, key);
    key("train_tokens", spec.train_tokens,
        "tokens of the text to train on, in windows spread over it; 0: all",
        {.low = 0, .high = kMost, .only_when_set = true});
  }

  template <class Self, class Visitor>
  static void visit_train_keys(Self& spec, Visitor& key) {
    key("steps", spec.schedule.steps, "updates of the parameters", {1, kMost});
    key("batch", spec.batch, "sequences per micro-batch", {1, 1 << 20});
    key("accumulation", spec.accumulation, "micro-batches per step", {1, 1 << 20});
    key("learning_rate", spec.learning_rate, "peak learning rate", {0, 1e6});
    key("schedule", spec.schedule.kind, "learning-rate schedule after warm-up");
    key("warmup", spec.schedule.warmup, "warm-up steps; when absent, at most a tenth of all steps",
        {0, kMost});
    key("floor", spec.schedule.floor, "final learning rate as a share of the peak", {0, 1});
    key("decay", spec.schedule.decay, "wsd: share of the steps over which the rate falls",
        {1e-6, 1});
    key("beta1", spec.optimiser.beta1, "AdamW", {0, 0.999999});
    key("beta2", spec.optimiser.beta2, "AdamW", {0, 0.9999999});
    key("weight_decay", spec.optimiser.weight_decay, "AdamW, times the learning rate", {0, 1e6});
    key("epsilon", spec.optimiser.epsilon, "AdamW", {0, 1});
    key("clip_norm", spec.clip_norm, "largest gradient norm; 0: no limit", {0, 1e9});
    key("seed", spec.seed, "of initial weights, batches and dropout", {0, kMost});
    key("precision", spec.precision, "of activations and products");
    key("device", spec.device, "where to train");
    key("threads", spec.threads, "CPU threads", {1, 1024});
    key("eval_every", spec.eval_every, "steps between evaluations; 0: only at the end", {0, kMost});
    key("checkpoint_every", spec.checkpoint_every, "steps between checkpoints; 0: only at the end",
        {0, kMost});
    key("patience", spec.patience, "evaluations without a better loss before stopping; 0: never",
        {0, kMost});
    key("base_batch_tokens", spec.base_batch_tokens,
        "tokens per step for which the settings were tuned; 0: no correction", {0, kMost});
    key("base_total_tokens", spec.base_total_tokens, "likewise, tokens per run", {0, kMost});
    key("prox", spec.optimiser.prox, "penalty on groups of weights, by a proximal step after AdamW",
        {.only_when_set = true});
    key("prox_rows", spec.optimiser.prox_rows, "its strength on a neuron's input weights",
        {.low = 0, .high = 1e6, .only_when_set = true});
    key("prox_heads", spec.optimiser.prox_heads, "its strength on all weights of a head",
        {.low = 0, .high = 1e6, .only_when_set = true});
    key("keep_best", spec.keep_best, "the run ends with the weights of its best evaluation",
        {.only_when_set = true});
  }
};

/// The tables of a run spec as help shows them.
std::vector<TableDescription> describe_run_spec();

/// Reads, overrides by settings "a.b=value", and validates. `vocab` may be absent: 0 then.
RunSpec read_run_spec(const std::filesystem::path& path, const std::vector<std::string>& settings);
RunSpec read_run_spec_text(const std::string& text, const std::string& origin,
                           const std::vector<std::string>& settings = {});
/// The [train] table alone, for files that hold one among other things.
void read_train_table(TomlReader& table, RunSpec& spec);
/// Every key resolved; reads back as an equal spec.
std::string to_toml(const RunSpec& spec);
/// Names the run: a hash of the resolved spec and of the tokens it reads, if it reads any.
std::string run_id(const RunSpec& spec, const Hash128& tokens);

}  // namespace fathom::train
