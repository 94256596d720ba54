#include "train/run_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "data/tasks/task.h"
#include "model/parametrisation.h"
#include "model/spec_toml.h"
#include "model/units.h"

namespace fathom::train {
namespace {

void read_data_table(TomlReader& data, RunSpec& spec) {
  KeyReader reader(data);
  RunSpec::visit_data_keys(spec, reader);
  if (!spec.has_task()) {
    data.text("tokens");  // must be there
    if (spec.task != data::TaskSpec{}) data.fail("task", "is missing for its parameters");
  } else if (!spec.tokens.empty()) {
    data.fail("tokens", "and task exclude each other");
  } else if (spec.train_tokens != 0) {
    data.fail("train_tokens", "is for a text; a task has 'examples'");
  }
  data.finish();
}

/// Every parameter of the task filled in, and the vocabulary where it was left open.
void resolve_task(RunSpec& spec) {
  const auto task = data::make_task(spec.task, spec.model.context);
  spec.task = task->spec();
  if (spec.model.mask != engine::MaskKind::bidirectional &&
      (spec.task.class_first || spec.task.in_place)) {
    throw ConfigError(fmt::format(
        "data.{} asks before the model has read: it needs model.mask = \"bidirectional\"",
        spec.task.class_first ? "class_first" : "in_place"));
  }
  if (spec.model.vocab == 0) spec.model.vocab = task->vocabulary();
  if (spec.model.vocab < task->vocabulary()) {
    throw ConfigError(fmt::format("model.vocab = {} is smaller than the {} tokens of task {}",
                                  spec.model.vocab, task->vocabulary(), name_of(spec.task.kind)));
  }
}

/// Requires that the groups of a proximal step exist and can be removed one by one.
void check_groups(const TomlReader& train, const RunSpec& spec) {
  if (spec.optimiser.prox_rows > 0 && spec.model.sublayers().find('f') == std::string::npos) {
    train.fail("prox_rows", "is for neurons, and the model has no feed-forward");
  }
  if (spec.optimiser.prox_heads > 0 && !has_separate_heads(spec.model)) {
    train.fail("prox_heads", "needs heads of their own: no attention_norm, keys = \"tokens\"");
  }
}

RunSpec read(TomlReader& file) {
  RunSpec spec;
  TomlReader data = file.table("data");
  read_data_table(data, spec);
  TomlReader model = file.table("model");
  const bool given_vocab = model.has("vocab");
  spec.model = model::read_model_spec(model);
  if (!given_vocab) spec.model.vocab = 0;  // the tokens decide
  if (spec.has_task()) resolve_task(spec);
  TomlReader train = file.table("train");
  read_train_table(train, spec);
  check_groups(train, spec);
  file.finish();
  return spec;
}

model::RunCorrection correction(const RunSpec& spec) {
  if (spec.base_batch_tokens == 0) return {};
  return model::run_correction(
      as_double(spec.tokens_per_step()) / as_double(spec.base_batch_tokens),
      as_double(spec.total_tokens()) / as_double(spec.base_total_tokens));
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
  const bool strength = spec.optimiser.prox_rows > 0 || spec.optimiser.prox_heads > 0;
  if (strength && spec.optimiser.prox == engine::ProxKind::none) {
    table.fail("prox", "is missing for prox_rows or prox_heads: l21 or linf1");
  }
  if (!strength && spec.optimiser.prox != engine::ProxKind::none) {
    table.fail("prox", "needs a strength, prox_rows or prox_heads");
  }
  table.finish();
}

std::string to_toml(const RunSpec& spec) {
  KeyWriter data, train;
  RunSpec::visit_data_keys(spec, data);
  RunSpec::visit_train_keys(spec, train);
  // Without a task the tokens are named even before they are known: ids hash this text.
  const bool open = !spec.has_task() && spec.tokens.empty();
  return "[data]\n" + std::string(open ? "tokens = \"\"\n" : "") + data.text() + "\n[model]\n" +
         model::to_toml(spec.model) + "\n[train]\n" + train.text();
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
  if (!spec.has_task()) named.tokens = tokens.hex();  // what the folder holds, not where it is
  Hasher hasher;
  hasher.add_field(to_toml(named));
  return hasher.value().hex().substr(0, 16);
}

}  // namespace fathom::train
