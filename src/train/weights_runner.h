// Given weights in a plan on the processor, in f32, ready to run.
#pragma once

#include <memory>

#include "engine/cpu/cpu_executor.h"
#include "model/transformer.h"
#include "train/weights.h"

namespace fathom::train {

struct WeightsRunner {
  std::unique_ptr<const model::Transformer> model;
  std::unique_ptr<engine::CpuExecutor> executor;

  /// `options` gives purpose and batch; dropout is off.
  WeightsRunner(const Weights& weights, const model::BuildOptions& options, int threads) {
    model::ModelSpec spec = weights.spec;
    spec.dropout = 0;
    model = model::build_transformer(spec, options);
    engine::CpuOptions cpu;
    cpu.threads = threads;
    executor = std::make_unique<engine::CpuExecutor>(model->plan, cpu);
    for (const model::Parameter& parameter : model->parameters) {
      executor->write(parameter.id, weights.parameters.at(parameter.name));
    }
    executor->run(engine::Program::refresh, {});
  }
};

}  // namespace fathom::train
