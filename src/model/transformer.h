// A member of the family as a step plan, with the list of its parameters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/executor.h"
#include "model/model_spec.h"
#include "model/parametrisation.h"
#include "model/step_settings.h"

namespace fathom::model {

struct Parameter {
  std::string name;  // "sub.3.attention.qkv.weight"
  engine::TensorId id;
  Role role;
  Scaling scaling;
  double initial = 0;           // of vectors: norm gains start at 1
  std::int64_t value_row = -1;  // of a fused qkv weight: first row of the values,
  double value_init_std = 0;    // which may start differently (DeepNorm)
};

enum class Purpose : std::uint8_t {
  training,  // ends in a loss; programs evaluate, train, update
  logits,    // ends in the logits of all rows; program evaluate
};

struct BuildOptions {
  std::int64_t batch = 1;
  Precision precision = Precision::f32;
  Purpose purpose = Purpose::training;
  OptimiserSettings optimiser;
  std::uint32_t dropout_seed = 0;
  engine::PlanTarget target;      // the device the plan is for (engine/device.h)
  bool keep_activations = false;  // streams, logits and what attention reads stay readable
};

struct Transformer {
  ModelSpec spec;
  BuildOptions options;
  engine::StepPlan plan;
  std::vector<Parameter> parameters;
  engine::TensorId tokens, targets;       // i32 [B T, 1]
  engine::TensorId losses, loss;          // training
  engine::TensorId logits;                // Purpose::logits
  std::vector<engine::TensorId> streams;  // after the embedding and after every sublayer

  std::int64_t rows() const { return options.batch * spec.context; }
  std::int64_t parameter_count() const;
  /// Without the token table, positions and an untied head.
  std::int64_t non_embedding_count() const;
};

/// Validates the spec and builds the finished plan. The result does not move: executors point to
/// its plan.
std::unique_ptr<const Transformer> build_transformer(const ModelSpec& spec,
                                                     const BuildOptions& options);

/// Initial values: a pure function of (seed, parameter name, element), whatever the order and the
/// number of threads that draw them (0: as many as the machine has).
std::vector<float> initial_values(const Transformer& model, const Parameter& parameter,
                                  std::uint64_t seed, unsigned threads = 0);
void initialise(const Transformer& model, engine::Executor& executor, std::uint64_t seed);

}  // namespace fathom::model
