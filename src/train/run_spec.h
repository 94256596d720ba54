// Everything that decides the result of a training run. Two runs with equal specs, equal tokens
// and equal thread counts give equal bits.
//
//   [model]  see model/model_spec.h        [data]  tokens = "FOLDER", eval_tokens = 100000
//   [train]  steps, batch, learning_rate, ...
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/toml_reader.h"
#include "engine/device.h"
#include "model/transformer.h"
#include "train/schedule.h"

namespace fathom::train {

struct RunSpec {
  model::ModelSpec model;

  std::string tokens;                  // folder of a prepared corpus
  std::int64_t eval_tokens = 100'000;  // held-out tokens every evaluation reads

  std::int64_t batch = 16;        // sequences of one micro-batch
  std::int64_t accumulation = 1;  // micro-batches of one step
  double learning_rate = 1e-3;
  Schedule schedule;
  model::OptimiserSettings optimiser;
  double clip_norm = 1;
  std::uint64_t seed = 1;
  model::Precision precision = model::Precision::f32;
  engine::DeviceKind device = engine::DeviceKind::cpu;
  std::int64_t threads = 1;           // of the processor
  std::int64_t eval_every = 0;        // steps; 0: only at the end
  std::int64_t checkpoint_every = 0;  // steps; 0: only at the end
  std::int64_t patience = 0;          // evaluations without a better loss before stopping; 0: never
  std::int64_t base_batch_tokens = 0;  // 0: no batch and run-length correction
  std::int64_t base_total_tokens = 0;

  std::int64_t tokens_per_step() const { return batch * accumulation * model.context; }
  std::int64_t total_tokens() const { return tokens_per_step() * schedule.steps; }
  engine::Device place() const { return {.kind = device, .threads = static_cast<int>(threads)}; }
  /// Learning rate and AdamW settings after the batch and run-length correction.
  double corrected_learning_rate() const;
  model::OptimiserSettings corrected_optimiser() const;
};

/// Reads, overrides by settings "a.b=value", and validates. `vocab` may be absent: 0 then.
RunSpec read_run_spec(const std::filesystem::path& path, const std::vector<std::string>& settings);
RunSpec read_run_spec_text(const std::string& text, const std::string& origin,
                           const std::vector<std::string>& settings = {});
/// The [train] table alone, for files that hold one beside other things.
void read_train_table(TomlReader& table, RunSpec& spec);
/// Every key resolved; reads back as an equal spec.
std::string to_toml(const RunSpec& spec);
/// Names the run: a hash of the resolved spec and of the tokens it reads.
std::string run_id(const RunSpec& spec, const Hash128& tokens);

}  // namespace fathom::train
