// One case table for all ops: a case builds a small plan around an op; `match`, `grad` and
// `invariance` then run over the same table.
#pragma once

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "core/random.h"
#include "engine/executor.h"

namespace fathom::engine {

/// A plan with random inputs. Float operands are parameters, so that every gradient can be read.
struct OpCase {
  std::string name;
  std::function<void(StepPlan&, TensorId& y)> build;  // y may stay unset when the op is a loss
  double epsilon = 1e-5;                              // of finite differences
  double lowest = -1, highest = 1;                    // of the random operands
  PlanTarget target = {};                             // for whom the plan is made
};

inline void PrintTo(const OpCase& op_case, std::ostream* out) {
  *out << op_case.name;
}

std::vector<OpCase> op_cases();
/// Plans with every fused op, made for a device that offers them at any size: for the reference.
std::vector<OpCase> fused_cases();

/// The finished plan of a case, with a seeded gradient for its result.
struct BuiltCase {
  explicit BuiltCase(const OpCase& op_case);
  StepPlan plan;
  TensorId y, dy;
};

/// Writes the same reproducible values to every parameter and input of any executor.
void fill(Executor& executor, const OpCase& op_case);

inline StepScalars case_scalars() {
  StepScalars scalars;
  scalars.loss_scale = 0.25f;
  scalars.learning_rate = 0.01f;
  scalars.clip_norm = 0.5f;
  scalars.step = 3;
  scalars.draw = 7;
  return scalars;
}

inline std::vector<float> read_all(const Executor& executor, TensorId id) {
  std::vector<float> values(static_cast<std::size_t>(executor.plan().tensor(id).size()));
  executor.read(id, values);
  return values;
}

/// Every float the programs leave behind: results, gradients, updated parameters, moments.
std::vector<std::vector<float>> everything(Executor& executor, const OpCase& op_case,
                                           const BuiltCase& built);

double norm_of(std::span<const float> values);
double distance(std::span<const float> a, std::span<const float> b);

}  // namespace fathom::engine
