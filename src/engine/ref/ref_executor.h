// Runs a plan in double precision with naive loops: the reference that other backends are compared
// with. Types of tensors are ignored; every tensor has its own memory.
#pragma once

#include "engine/executor.h"

namespace fathom::engine {

class RefExecutor : public Executor {
 public:
  explicit RefExecutor(const StepPlan& plan);
  const StepPlan& plan() const override { return plan_; }
  void write(TensorId id, std::span<const float> values) override;
  void write_tokens(TensorId id, std::span<const std::int32_t> values) override;
  void read(TensorId id, std::span<float> values) const override;
  void run(Program program, const StepScalars& scalars) override;
  std::int64_t bytes() const override;

  /// Direct access in full precision; nullptr for a tensor that does not exist.
  double* data(TensorId id);

 private:
  const StepPlan& plan_;
  TensorTable<std::vector<double>> memory_;  // views of whole storages stay empty
};

}  // namespace fathom::engine
