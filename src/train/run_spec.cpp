#include "train/run_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "model/spec_toml.h"

namespace fathom::train {
namespace {

const std::vector<std::string> kSchedules{"constant", "cosine", "linear", "wsd"};
const std::vector<std::string> kPrecisions{"f32", "bf16"};
const std::vector<std::string> kDevices{"cpu", "cuda"};

template <class Enum>
Enum read_word(TomlReader& table, const char* key, Enum fallback,
               const std::vector<std::string>& words) {
  const std::string given = table.text(key, words[static_cast<std::size_t>(fallback)]);
  const auto found = std::find(words.begin(), words.end(), given);
  if (found == words.end()) {
    table.fail(key, fmt::format("'{}' is not one of {}.{}", given, join(words, ", "),
                                did_you_mean(given, words)));
  }
  return static_cast<Enum>(found - words.begin());
}

std::int64_t read_whole(TomlReader& table, const char* key, std::int64_t fallback, std::int64_t low,
                        std::int64_t high = std::int64_t{1} << 40) {
  const std::int64_t value = table.integer(key, fallback);
  if (value < low || value > high) {
    table.fail(key, fmt::format("= {} must lie between {} and {}", value, low, high));
  }
  return value;
}

double read_number(TomlReader& table, const char* key, double fallback, double low, double high) {
  const double value = table.number(key, fallback);
  if (!(value >= low && value <= high)) {
    table.fail(key, fmt::format("= {} must lie between {} and {}", value, low, high));
  }
  return value;
}

void read_train(TomlReader& table, RunSpec& spec) {
  spec.schedule.steps = read_whole(table, "steps", spec.schedule.steps, 1);
  spec.batch = read_whole(table, "batch", spec.batch, 1, 1 << 20);
  spec.accumulation = read_whole(table, "accumulation", spec.accumulation, 1, 1 << 20);
  spec.learning_rate = read_number(table, "learning_rate", spec.learning_rate, 0, 1e6);
  spec.schedule.kind = read_word(table, "schedule", spec.schedule.kind, kSchedules);
  spec.schedule.warmup = read_whole(
      table, "warmup", std::min<std::int64_t>(spec.schedule.warmup, spec.schedule.steps / 10), 0);
  spec.schedule.floor = read_number(table, "floor", spec.schedule.floor, 0, 1);
  spec.schedule.decay = read_number(table, "decay", spec.schedule.decay, 1e-6, 1);
  spec.optimiser.beta1 = read_number(table, "beta1", spec.optimiser.beta1, 0, 0.999999);
  spec.optimiser.beta2 = read_number(table, "beta2", spec.optimiser.beta2, 0, 0.9999999);
  spec.optimiser.weight_decay =
      read_number(table, "weight_decay", spec.optimiser.weight_decay, 0, 1e6);
  spec.optimiser.epsilon = read_number(table, "epsilon", spec.optimiser.epsilon, 0, 1);
  spec.clip_norm = read_number(table, "clip_norm", spec.clip_norm, 0, 1e9);
  spec.seed = static_cast<std::uint64_t>(
      read_whole(table, "seed", static_cast<std::int64_t>(spec.seed), 0));
  spec.precision = read_word(table, "precision", spec.precision, kPrecisions);
  spec.device = read_word(table, "device", spec.device, kDevices);
  spec.threads = read_whole(table, "threads", spec.threads, 1, 1024);
  spec.eval_every = read_whole(table, "eval_every", spec.eval_every, 0);
  spec.checkpoint_every = read_whole(table, "checkpoint_every", spec.checkpoint_every, 0);
  spec.patience = read_whole(table, "patience", spec.patience, 0);
  spec.base_batch_tokens = read_whole(table, "base_batch_tokens", spec.base_batch_tokens, 0);
  spec.base_total_tokens = read_whole(table, "base_total_tokens", spec.base_total_tokens, 0);
  if ((spec.base_batch_tokens == 0) != (spec.base_total_tokens == 0)) {
    table.fail("base_batch_tokens", "and base_total_tokens come together");
  }
  table.finish();
}

RunSpec read(TomlReader& file) {
  RunSpec spec;
  TomlReader data = file.table("data");
  spec.tokens = data.text("tokens");
  spec.eval_tokens = read_whole(data, "eval_tokens", spec.eval_tokens, 1);
  data.finish();
  TomlReader model = file.table("model");
  const bool given_vocab = model.has("vocab");
  spec.model = model::read_model_spec(model);
  if (!given_vocab) spec.model.vocab = 0;  // the tokens decide
  TomlReader train = file.table("train");
  read_train(train, spec);
  file.finish();
  return spec;
}

model::RunCorrection correction(const RunSpec& spec) {
  if (spec.base_batch_tokens == 0) return {};
  return model::run_correction(
      static_cast<double>(spec.tokens_per_step()) / static_cast<double>(spec.base_batch_tokens),
      static_cast<double>(spec.total_tokens()) / static_cast<double>(spec.base_total_tokens));
}

std::string number_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
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
  read_train(table, spec);
}

std::string to_toml(const RunSpec& spec) {
  std::string out = "[data]\n";
  std::string quoted;
  for (const char c : spec.tokens) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  const auto line = [&](const char* key, const std::string& value) {
    out += fmt::format("{} = {}\n", key, value);
  };
  const auto whole = [&](const char* key, std::int64_t value) {
    line(key, fmt::format("{}", value));
  };
  line("tokens", "\"" + quoted + "\"");
  whole("eval_tokens", spec.eval_tokens);
  out += "\n[model]\n" + model::to_toml(spec.model) + "\n[train]\n";
  whole("steps", spec.schedule.steps);
  whole("batch", spec.batch);
  whole("accumulation", spec.accumulation);
  line("learning_rate", number_text(spec.learning_rate));
  line("schedule", "\"" + kSchedules[static_cast<std::size_t>(spec.schedule.kind)] + "\"");
  whole("warmup", spec.schedule.warmup);
  line("floor", number_text(spec.schedule.floor));
  line("decay", number_text(spec.schedule.decay));
  line("beta1", number_text(spec.optimiser.beta1));
  line("beta2", number_text(spec.optimiser.beta2));
  line("weight_decay", number_text(spec.optimiser.weight_decay));
  line("epsilon", number_text(spec.optimiser.epsilon));
  line("clip_norm", number_text(spec.clip_norm));
  whole("seed", static_cast<std::int64_t>(spec.seed));
  line("precision", "\"" + kPrecisions[static_cast<std::size_t>(spec.precision)] + "\"");
  line("device", "\"" + kDevices[static_cast<std::size_t>(spec.device)] + "\"");
  whole("threads", spec.threads);
  whole("eval_every", spec.eval_every);
  whole("checkpoint_every", spec.checkpoint_every);
  whole("patience", spec.patience);
  whole("base_batch_tokens", spec.base_batch_tokens);
  whole("base_total_tokens", spec.base_total_tokens);
  return out;
}

std::string run_id(const RunSpec& spec, const Hash128& tokens) {
  RunSpec named = spec;
  named.tokens = tokens.hex();  // what the folder holds, not where it lies
  Hasher hasher;
  hasher.add_field(to_toml(named));
  return hasher.value().hex().substr(0, 16);
}

}  // namespace fathom::train
