// Runs a plan on the CPU: oneDNN for GEMMs, our own kernels for the rest. Every op is bound once to
// its memory, kernels and primitives; a run calls the bound ops in order, allocates nothing and
// looks nothing up.
//
// Results depend only on the plan, the inputs, the instruction set and the number of threads.
#pragma once

#include <functional>
#include <memory>

#include "engine/cpu/cpu_features.h"
#include "engine/executor.h"

namespace fathom::engine {

struct CpuOptions {
  int threads = 1;
  Isa isa = best_isa();
};

class CpuExecutor : public Executor {
 public:
  /// `plan` must outlive the executor.
  CpuExecutor(const StepPlan& plan, const CpuOptions& options);
  ~CpuExecutor() override;
  const StepPlan& plan() const override;
  void write(TensorId id, std::span<const float> values) override;
  void write_tokens(TensorId id, std::span<const std::int32_t> values) override;
  void read(TensorId id, std::span<float> values) const override;
  void run(Program program, const StepScalars& scalars) override;
  void hear(const std::function<bool()>& stop) override;
  void run_timed(Program program, const StepScalars& scalars,
                 const std::function<void(std::size_t, double)>& report) override;
  std::int64_t bytes() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fathom::engine
