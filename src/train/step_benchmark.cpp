#include "train/step_benchmark.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/counts.h"
#include "core/random.h"
#include "core/seconds_since.h"
#include "engine/executor.h"
#include "train/step_cost.h"

namespace fathom::train {
namespace {

using namespace engine;
using Clock = std::chrono::steady_clock;

void write_random_tokens(const model::Transformer& model, Executor& executor) {
  const RandomStream random(1, 0);
  std::vector<std::int32_t> ids(as_size(model.rows()));
  std::uint64_t next = 0;
  for (const TensorId target : {model.tokens, model.targets}) {
    for (auto& id : ids) {
      id = static_cast<std::int32_t>(random.below(next++, as_size(model.spec.vocab)));
    }
    executor.write_tokens(target, ids);
  }
}

model::BuildOptions placed(model::BuildOptions options, const Device& device) {
  options.target = target_of(device);
  return options;
}

double nominal(const model::Transformer& model) {
  double parameters = 0;
  for (const model::Parameter& parameter : model.parameters) {
    if (parameter.role == model::Role::position_table) continue;
    parameters += as_double(model.plan.tensor(parameter.id).size());
  }
  const auto tokens = as_double(model.rows());
  return 6 * parameters * tokens + 12.0 * as_double(model.spec.layers) *
                                       as_double(model.spec.width) * as_double(model.spec.context) *
                                       tokens;
}

}  // namespace

StepTiming time_steps(const model::ModelSpec& spec, const model::BuildOptions& options,
                      const Device& device, double seconds) {
  const auto start = Clock::now();
  const auto model = model::build_transformer(spec, placed(options, device));
  const auto owned = make_executor(model->plan, device);
  Executor& executor = *owned;
  model::initialise(*model, executor, 1);
  write_random_tokens(*model, executor);
  StepScalars scalars;
  scalars.loss_scale = 1.0f / static_cast<float>(model->rows());
  scalars.learning_rate = 1e-3f;
  scalars.clip_norm = 1;
  const auto step = [&] {
    executor.run(Program::train, scalars);
    executor.run(Program::update, scalars);
    ++scalars.step;
  };
  step();
  executor.wait();
  StepTiming timing;
  timing.first_seconds = seconds_since(start);
  // On a GPU several steps are queued before waiting for it, as in training.
  const int together = device.kind == DeviceKind::cuda ? 10 : 1;
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 3 || (seconds_since(begin) < seconds && times.size() < 1000)) {
    const auto before = Clock::now();
    for (int i = 0; i < together; ++i) step();
    executor.wait();
    times.push_back(seconds_since(before) / together);
  }
  std::sort(times.begin(), times.end());
  timing.best_seconds = times.front();
  timing.median_seconds = times[times.size() / 2];
  timing.steps = as_signed(times.size()) * together;
  timing.parameters = model->parameter_count();
  timing.flops = training_flops(model->plan);
  timing.bytes = training_bytes(model->plan);
  timing.nominal_flops = nominal(*model);
  timing.memory_bytes = executor.bytes();
  for (const Program program : {Program::train, Program::update}) {
    executor.run_timed(program, scalars, [&](std::size_t op, double op_seconds) {
      timing.seconds_by_op[op_name(model->plan.program(program)[op])] += op_seconds;
    });
  }
  return timing;
}

ForwardTiming time_forward(const model::ModelSpec& spec, model::BuildOptions options,
                           const Device& device, double seconds) {
  options.purpose = model::Purpose::logits;
  const auto model = model::build_transformer(spec, placed(options, device));
  const auto executor = make_executor(model->plan, device);
  model::initialise(*model, *executor, 1);
  const RandomStream random(1, 0);
  std::vector<std::int32_t> ids(as_size(model->rows()));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>(random.below(i, as_size(spec.vocab)));
  }
  executor->write_tokens(model->tokens, ids);
  ForwardTiming timing{INFINITY, executor->bytes(), model->parameter_count()};
  const auto begin = Clock::now();
  for (int pass = 0; pass < 3 || (seconds_since(begin) < seconds && pass < 1000); ++pass) {
    const auto before = Clock::now();
    executor->run(Program::evaluate, {});
    executor->wait();
    timing.best_seconds = std::min(timing.best_seconds, seconds_since(before));
  }
  return timing;
}

namespace {

/// A model with its executor, ready to step.
struct PackedModel {
  std::unique_ptr<const model::Transformer> model;
  std::unique_ptr<Executor> executor;

  PackedModel(const model::ModelSpec& spec, const model::BuildOptions& options,
              const Device& device)
      : model(model::build_transformer(spec, placed(options, device))),
        executor(make_executor(model->plan, device)) {}

  /// Starts over and returns the last loss.
  float train(std::int64_t steps) {
    StepScalars scalars;
    scalars.loss_scale = 1.0f / static_cast<float>(model->rows());
    scalars.learning_rate = 1e-3f;
    scalars.clip_norm = 1;
    for (scalars.step = 1; scalars.step <= steps; ++scalars.step) {
      executor->run(Program::train, scalars);
      executor->run(Program::update, scalars);
    }
    return read_scalar(*executor, model->loss);
  }

  void start() {
    model::initialise(*model, *executor, 1);
    for (const Storage storage : {Storage::moment1, Storage::moment2}) {
      const TensorId whole = model->plan.whole(storage);
      executor->write(whole, std::vector<float>(as_size(model->plan.tensor(whole).size())));
    }
    write_random_tokens(*model, *executor);
    executor->wait();
  }
};

}  // namespace

PackTiming time_pack(const std::vector<model::ModelSpec>& specs, const model::BuildOptions& options,
                     const Device& device, std::int64_t steps) {
  std::vector<std::unique_ptr<PackedModel>> models;
  for (const model::ModelSpec& spec : specs) {
    models.push_back(std::make_unique<PackedModel>(spec, options, device));
    models.back()->start();
    models.back()->train(2);  // kernels loaded, graphs made
  }
  PackTiming timing;
  std::vector<float> alone(models.size()), together(models.size());
  for (std::size_t i = 0; i < models.size(); ++i) {
    models[i]->start();
    const auto start = Clock::now();
    alone[i] = models[i]->train(steps);
    timing.alone_seconds.push_back(seconds_since(start));
  }
  for (const auto& model : models) model->start();
  const auto start = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < models.size(); ++i) {
      threads.emplace_back([&, i] { together[i] = models[i]->train(steps); });
    }
  }
  timing.together_seconds = seconds_since(start);
  timing.same_bits = alone == together;
  return timing;
}

}  // namespace fathom::train
