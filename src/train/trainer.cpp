#include "train/trainer.h"

#include <fmt/format.h>

#include "core/counts.h"
#include "core/error.h"
#include "core/safetensors.h"
#include "engine/device.h"

namespace fathom::train {
namespace {

using engine::Program;
using engine::Storage;

model::BuildOptions build_options(const RunSpec& spec) {
  model::BuildOptions options;
  options.batch = spec.batch;
  options.precision = spec.precision;
  options.target = engine::target_of(spec.place());
  options.optimiser = spec.corrected_optimiser();
  options.dropout_seed = static_cast<std::uint32_t>(spec.seed);
  return options;
}

data::Sampling sampling_of(const RunSpec& spec) {
  return {as_size(spec.model.context), as_size(spec.batch), spec.seed};
}

}  // namespace

RunSpec resolve(const RunSpec& spec, const data::TokenSet& tokens) {
  RunSpec resolved = spec;
  const auto vocabulary = as_signed(tokens.tokenizer().vocabulary());
  if (resolved.model.vocab == 0) resolved.model.vocab = vocabulary;
  if (resolved.model.vocab < vocabulary) {
    throw ConfigError(fmt::format("model.vocab = {} is smaller than the tokenizer's {} of {}",
                                  spec.model.vocab, vocabulary, spec.tokens));
  }
  return resolved;
}

Trainer::Trainer(const RunSpec& spec, const data::TokenSet& tokens)
    : spec_(spec),
      optimiser_(spec.corrected_optimiser()),
      learning_rate_(spec.corrected_learning_rate()),
      model_(model::build_transformer(spec.model, build_options(spec))),
      training_(tokens.file(data::Split::train)),
      sampler_(training_.size(), sampling_of(spec), training_.name()),
      evaluation_(tokens.file(data::Split::valid), as_size(spec.model.context),
                  as_size(spec.eval_tokens)),
      evaluation_bytes_(evaluation_.target_bytes(tokens.tokenizer().token_bytes())) {
  for (const data::Split split : {data::Split::train, data::Split::valid}) {
    tokens.file(split).verify();
  }
  executor_ = engine::make_executor(model_->plan, spec.place());
  const auto rows = as_size(model_->rows());
  inputs_.resize(rows);
  targets_.resize(rows);
  starts_.resize(as_size(spec.batch));
  if (spec.device == engine::DeviceKind::cuda) {
    text_held_ =
        executor_->hold_text(training_.ids(), static_cast<int>(training_.info().bytes_per_id));
  }
  model::initialise(*model_, *executor_, spec.seed);
}

void Trainer::write_batch(std::uint64_t draw) {
  if (text_held_) {
    for (std::size_t row = 0; row < starts_.size(); ++row) {
      starts_[row] = sampler_.position(draw, row);
    }
    executor_->write_windows(model_->tokens, model_->targets, starts_);
    return;
  }
  sampler_.read(training_, draw, inputs_, targets_);
  executor_->write_tokens(model_->tokens, inputs_);
  executor_->write_tokens(model_->targets, targets_);
}

void Trainer::start_step() {
  const std::int64_t before = steps_started();
  engine::StepScalars scalars;
  scalars.loss_scale = static_cast<float>(1.0 / as_double(spec_.tokens_per_step()));
  scalars.learning_rate = static_cast<float>(learning_rate_ * spec_.schedule.factor(before));
  scalars.clip_norm = static_cast<float>(spec_.clip_norm);
  scalars.step = before + 1;
  for (std::int64_t part = 0; part < spec_.accumulation; ++part) {
    scalars.draw = as_size(before * spec_.accumulation + part);
    write_batch(scalars.draw);
    executor_->run(part == 0 ? Program::train : Program::train_accumulate, scalars);
    executor_->ask(model_->loss);
  }
  executor_->run(Program::update, scalars);
  executor_->ask(model_->plan.adamw_norm());
  pending_.push_back(scalars.learning_rate);
}

StepResult Trainer::finish_step() {
  if (pending_.empty()) throw InternalError("no step was started");
  StepResult result;
  for (std::int64_t part = 0; part < spec_.accumulation; ++part) {
    result.loss += executor_->answer();
  }
  result.gradient_norm = executor_->answer();
  result.learning_rate = pending_.front();
  pending_.pop_front();
  ++steps_done_;
  return result;
}

void Trainer::forget_pending() {
  const std::int64_t done = steps_done_;
  while (!pending_.empty()) finish_step();
  steps_done_ = done;
}

double summed_loss(const model::Transformer& model, engine::Executor& executor,
                   const data::EvaluationSet& windows) {
  const auto rows = as_size(model.rows());
  const auto context = as_size(model.spec.context);
  std::vector<std::int32_t> inputs(rows), targets(rows);
  std::vector<float> losses(rows);
  double nats = 0;
  for (std::uint64_t first = 0; first < windows.windows(); first += rows / context) {
    const std::uint64_t counted = windows.read(first, inputs, targets);
    executor.write_tokens(model.tokens, inputs);
    executor.write_tokens(model.targets, targets);
    executor.run(Program::evaluate, {});
    executor.read(model.losses, losses);
    for (std::size_t i = 0; i < counted * context; ++i) nats += losses[i];
  }
  return nats;
}

Evaluation Trainer::evaluate() {
  const double nats = summed_loss(*model_, *executor_, evaluation_);
  return {nats / as_double(evaluation_.target_tokens()),
          data::bits_per_byte(nats, evaluation_bytes_)};
}

namespace {

constexpr const char* kFormat = "fathom.checkpoint.v1";

struct Part {
  const char* prefix;
  Storage storage;
};
constexpr Part kParts[] = {
    {"", Storage::parameter}, {"moment1.", Storage::moment1}, {"moment2.", Storage::moment2}};

/// Looks at everything that load() is about to copy.
void check_tensors(const SafetensorsFile& file, const model::Transformer& model,
                   const std::string& origin) {
  for (const Part& part : kParts) {
    for (const model::Parameter& parameter : model.parameters) {
      const engine::Tensor& tensor = model.plan.tensor(parameter.id);
      const TensorView* view = file.find(part.prefix + parameter.name);
      if (view == nullptr) {
        throw DataError(fmt::format("{}: has no tensor {}{}", origin, part.prefix, parameter.name));
      }
      const std::vector<std::uint64_t> shape{as_size(tensor.rows), as_size(tensor.cols)};
      if (view->type != TensorType::f32 || view->shape != shape) {
        throw DataError(fmt::format("{}: tensor {} has another shape or type than the model",
                                    origin, view->name));
      }
      view->verify();
    }
  }
}

std::int64_t read_steps(const TensorMetadata& metadata, const std::string& origin) {
  try {
    return std::stoll(metadata.at("steps"));
  } catch (const std::exception&) {
    throw DataError(fmt::format("{}: has no number of steps", origin));
  }
}

/// A parameter's slice of a whole storage.
std::span<float> slice(std::vector<float>& whole, const engine::Tensor& tensor) {
  return std::span(whole).subspan(as_size(tensor.offset_bytes / 4), as_size(tensor.size()));
}

}  // namespace

void Trainer::save(const std::filesystem::path& path,
                   const std::map<std::string, std::string>& notes) {
  std::vector<TensorSpec> tensors;
  for (const Part& part : kParts) {
    for (const model::Parameter& parameter : model_->parameters) {
      const engine::Tensor& tensor = model_->plan.tensor(parameter.id);
      tensors.push_back({part.prefix + parameter.name,
                         TensorType::f32,
                         {as_size(tensor.rows), as_size(tensor.cols)}});
    }
  }
  TensorMetadata metadata(notes.begin(), notes.end());
  metadata["format"] = kFormat;
  metadata["steps"] = std::to_string(steps_done_);
  SafetensorsWriter writer(path, tensors, metadata);
  for (const Part& part : kParts) {
    const engine::TensorId whole = model_->plan.whole(part.storage);
    std::vector<float> values(as_size(model_->plan.tensor(whole).size()));
    executor_->read(whole, values);
    for (const model::Parameter& parameter : model_->parameters) {
      writer.write(part.prefix + parameter.name,
                   std::as_bytes(slice(values, model_->plan.tensor(parameter.id))));
    }
  }
  writer.commit();
}

std::map<std::string, std::string> Trainer::load(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  const TensorMetadata& metadata = file.metadata();
  if (!metadata.contains("format") || metadata.at("format") != kFormat ||
      !metadata.contains("steps")) {
    throw DataError(fmt::format("{}: is not a checkpoint of fathom", path.string()));
  }
  const std::int64_t steps = read_steps(metadata, path.string());
  check_tensors(file, *model_, path.string());
  for (const Part& part : kParts) {
    const engine::TensorId whole = model_->plan.whole(part.storage);
    std::vector<float> values(as_size(model_->plan.tensor(whole).size()));
    for (const model::Parameter& parameter : model_->parameters) {
      copy_as_f32(*file.find(part.prefix + parameter.name),
                  slice(values, model_->plan.tensor(parameter.id)));
    }
    executor_->write(whole, values);
  }
  executor_->run(Program::refresh, {});
  steps_done_ = steps;
  return {metadata.begin(), metadata.end()};
}

}  // namespace fathom::train
