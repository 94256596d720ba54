// Runs a plan: owns the memory of all storages and executes programs. Implementations: ref (double
// precision, naive, the reference), cpu, and a CUDA module loaded at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>

#include "core/error.h"
#include "core/random.h"
#include "engine/plan/step_plan.h"
#include "engine/plan/step_scalars.h"

namespace fathom::engine {

/// Initial values: normal numbers, element i from index i of a stream.
struct NormalDraw {
  RandomStream random;
  double deviation = 1;
  std::int64_t later_begin = -1;  // elements from here on have another deviation; -1: none do
  double later_deviation = 1;

  float value(std::int64_t i) const {
    const bool later = later_begin >= 0 && i >= later_begin;
    return static_cast<float>((later ? later_deviation : deviation) *
                              random.normal(static_cast<std::uint64_t>(i)));
  }
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual const StepPlan& plan() const = 0;

  /// Copies host values into a tensor (rounded to its type) and back. Sizes must be equal.
  /// Activations are readable only if the plan keeps them. Writing a parameter does not update its
  /// compute copy: call run(Program::refresh) after the last write.
  virtual void write(TensorId id, std::span<const float> values) = 0;
  virtual void write_tokens(TensorId id, std::span<const std::int32_t> values) = 0;
  virtual void read(TensorId id, std::span<float> values) const = 0;
  /// Fills an f32 tensor with exactly the values of NormalDraw::value, drawn where the tensor is
  /// stored. False when the executor leaves that to the host: then call write().
  virtual bool draw(TensorId /*id*/, const NormalDraw& /*draw*/) { return false; }

  /// Runs one program. On an asynchronous device this may return before it is done; read() waits.
  virtual void run(Program program, const StepScalars& scalars) = 0;

  /// Sets what is polled while a program runs, from any thread: true abandons the program with a
  /// StoppedError and leaves its results undefined. Empty: no polling. An executor may ignore it.
  virtual void hear(const std::function<bool()>& /*stop*/) {}

  /// run(), op by op: calls `report(op index, seconds)` for each. For profiles.
  virtual void run_timed(Program program, const StepScalars& scalars,
                         const std::function<void(std::size_t, double)>& /*report*/) {
    run(program, scalars);
  }
  /// ask() requests the value of a one-element tensor as of the end of all work submitted so far.
  /// answer() waits for that work, not for later work; requests are answered in order, each once.
  virtual void ask(TensorId id) {
    float value = 0;
    read(id, {&value, 1});
    answers_.push_back(value);
  }
  virtual float answer() {
    const float value = answers_.at(0);
    answers_.pop_front();
    return value;
  }
  /// Returns when all submitted work is done.
  virtual void wait() const {}

  /// Keeps a text of 2- or 4-byte token ids next to the model, so that batches need not be copied
  /// from the host. False when the executor has only host memory: then use write_tokens.
  virtual bool hold_text(std::span<const std::byte>, int /*bytes_per_token*/) { return false; }
  /// From that text: row b of `inputs` begins at starts[b], row b of `targets` one token later.
  virtual void write_windows(TensorId /*inputs*/, TensorId /*targets*/,
                             std::span<const std::uint64_t> /*starts*/) {
    throw InternalError("this executor holds no text");
  }

  /// All memory this executor holds, scratch included.
  virtual std::int64_t bytes() const = 0;

 private:
  std::deque<float> answers_;
};

/// Reads a one-element tensor.
inline float read_scalar(const Executor& executor, TensorId id) {
  float value = 0;
  executor.read(id, {&value, 1});
  return value;
}

}  // namespace fathom::engine
