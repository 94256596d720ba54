#include "train/run_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/spec_toml.h"

namespace fathom::train {
namespace {

RunSpec read(TomlReader& file) {
  RunSpec spec;
  TomlReader data = file.table("data");
  data.text("tokens");  // must be there
  KeyReader reader(data);
  RunSpec::visit_data_keys(spec, reader);
  data.finish();
  TomlReader model = file.table("model");
  const bool given_vocab = model.has("vocab");
  spec.model = model::read_model_spec(model);
  if (!given_vocab) spec.model.vocab = 0;  // the tokens decide
  TomlReader train = file.table("train");
  read_train_table(train, spec);
  file.finish();
  return spec;
}

model::RunCorrection correction(const RunSpec& spec) {
  if (spec.base_batch_tokens == 0) return {};
  return model::run_correction(
      static_cast<double>(spec.tokens_per_step()) / static_cast<double>(spec.base_batch_tokens),
      static_cast<double>(spec.total_tokens()) / static_cast<double>(spec.base_total_tokens));
}

}  // namespace

double RunSpec::corrected_learning_rate() const {
  return learning_rate * correction(*this).learning_rate;
}

model::OptimiserSettings RunSpec::corrected_optimiser() const {
  const model::RunCorrection factors = correction(*this);
  model::OptimiserSettings settings = optimiser;
  settings.weight_decay *= factors.weight_decay;
  settings.epsilon *= factors.epsilon;
  settings.beta1 = std::max(0.0, 1 - (1 - settings.beta1) * factors.one_minus_beta);
  settings.beta2 = std::max(0.0, 1 - (1 - settings.beta2) * factors.one_minus_beta);
  return settings;
}

RunSpec read_run_spec(const std::filesystem::path& path, const std::vector<std::string>& settings) {
  TomlReader file = TomlReader::from_file(path, settings);
  return read(file);
}

RunSpec read_run_spec_text(const std::string& text, const std::string& origin,
                           const std::vector<std::string>& settings) {
  TomlReader file = TomlReader::from_text(text, origin, settings);
  return read(file);
}

void read_train_table(TomlReader& table, RunSpec& spec) {
  const std::int64_t steps = table.integer("steps", spec.schedule.steps);
  spec.schedule.warmup = std::min(spec.schedule.warmup, steps / 10);
  KeyReader reader(table);
  RunSpec::visit_train_keys(spec, reader);
  if ((spec.base_batch_tokens == 0) != (spec.base_total_tokens == 0)) {
    table.fail("base_batch_tokens", "and base_total_tokens come together");
  }
  table.finish();
}

std::string to_toml(const RunSpec& spec) {
  KeyWriter data, train;
  RunSpec::visit_data_keys(spec, data);
  RunSpec::visit_train_keys(spec, train);
  return "[data]\n" + data.text() + "\n[model]\n" + model::to_toml(spec.model) + "\n[train]\n" +
         train.text();
}

std::vector<TableDescription> describe_run_spec() {
  const RunSpec defaults;
  KeyDescriber data, train;
  RunSpec::visit_data_keys(defaults, data);
  RunSpec::visit_train_keys(defaults, train);
  return {{"data", data.keys()}, describe_keys("model", defaults.model), {"train", train.keys()}};
}

std::string run_id(const RunSpec& spec, const Hash128& tokens) {
  RunSpec named = spec;
  named.tokens = tokens.hex();  // what the folder holds, not where it lies
  Hasher hasher;
  hasher.add_field(to_toml(named));
  return hasher.value().hex().substr(0, 16);
}

}  // namespace fathom::train
