// What runs a plan: owns the memory of all storages and executes programs. Implementations: ref
// (double precision, naive, the truth), cpu, and a CUDA module loaded at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/step_plan.h"
#include "engine/step_scalars.h"

namespace fathom::engine {

class Executor {
 public:
  virtual ~Executor() = default;
  virtual const StepPlan& plan() const = 0;

  /// Copies host values into a tensor (rounded to its type) and back. Sizes must be equal.
  /// Activations are readable only if the plan keeps them. Writing a parameter does not touch its
  /// compute copy: run(Program::refresh) after the last one.
  virtual void write(TensorId id, std::span<const float> values) = 0;
  virtual void write_tokens(TensorId id, std::span<const std::int32_t> values) = 0;
  virtual void read(TensorId id, std::span<float> values) const = 0;

  /// Runs one program. On an asynchronous device this may return before it is done; read() waits.
  virtual void run(Program program, const StepScalars& scalars) = 0;

  /// All memory this executor holds, scratch included.
  virtual std::int64_t bytes() const = 0;
};

/// Reads a tensor of one number.
inline float read_scalar(const Executor& executor, TensorId id) {
  float value = 0;
  executor.read(id, {&value, 1});
  return value;
}

}  // namespace fathom::engine
