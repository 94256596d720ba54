#include "train/trainer.h"

#include <fmt/format.h>

#include "core/counts.h"
#include "core/error.h"
#include "core/safetensors.h"
#include "engine/device.h"
#include "engine/executor.h"
#include "model/transformer.h"

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

Trainer::Trainer(const RunSpec& spec, const data::TokenSet* tokens)
    : spec_(spec),
      optimiser_(spec.corrected_optimiser()),
      learning_rate_(spec.corrected_learning_rate()),
      model_(model::build_transformer(spec.model, build_options(spec))),
      executor_(engine::make_executor(model_->plan, spec.place())),
      feed_(tokens == nullptr ? make_task_feed(spec_, *model_, *executor_)
                              : make_text_feed(spec_, *tokens, *model_, *executor_)) {
  model::initialise(*model_, *executor_, spec.seed);
}

Trainer::~Trainer() = default;

namespace {

/// Lets an executor ask `stop` for the lifetime of this object.
class Hearing {
 public:
  Hearing(engine::Executor& executor, const std::function<bool()>& stop) : executor_(executor) {
    if (stop) executor_.hear(stop);
  }
  ~Hearing() { executor_.hear({}); }
  Hearing(const Hearing&) = delete;
  Hearing& operator=(const Hearing&) = delete;

 private:
  engine::Executor& executor_;
};

}  // namespace

Evaluation Trainer::evaluate(const std::function<bool()>& stop) {
  const Hearing hearing(*executor_, stop);
  return feed_->evaluate();
}

void Trainer::compute_gradients(engine::StepScalars& scalars, const std::function<bool()>& stop) {
  const Hearing hearing(*executor_, stop);
  std::int64_t part = 0;
  try {
    for (; part < spec_.accumulation; ++part) {
      scalars.draw = as_size(steps_started() * spec_.accumulation + part);
      // A mean over the targets of every micro-batch, and over the micro-batches.
      const std::int64_t counted = std::max<std::int64_t>(1, feed_->write_batch(scalars.draw));
      scalars.loss_scale = static_cast<float>(1.0 / as_double(spec_.accumulation * counted));
      executor_->run(part == 0 ? Program::train : Program::train_accumulate, scalars);
      executor_->ask(model_->loss);
    }
  } catch (const StoppedError&) {
    while (part-- > 0) executor_->answer();  // of a step that was not started
    throw;
  }
}

void Trainer::start_step(const std::function<bool()>& stop) {
  const std::int64_t before = steps_started();
  engine::StepScalars scalars;
  scalars.learning_rate = static_cast<float>(learning_rate_ * spec_.schedule.factor(before));
  scalars.clip_norm = static_cast<float>(spec_.clip_norm);
  scalars.step = before + 1;
  compute_gradients(scalars, stop);
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

namespace {

constexpr const char* kFormat = "fathom.checkpoint.v1";

struct Part {
  const char* prefix;
  Storage storage;
};
constexpr Part kParts[] = {
    {"", Storage::parameter}, {"moment1.", Storage::moment1}, {"moment2.", Storage::moment2}};

/// Checks everything that load() is about to copy.
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
