// Runs a plan on one GPU. Every op is bound once to its memory, kernels and GEMM algorithms
// (binder.h); a program is then captured into a CUDA graph (step_graph.h), and a run is one small
// copy, of the step's scalars (mailbox.h), and one launch. A run allocates nothing and waits for
// nothing.
//
// The same plan, inputs and GPU give the same bits: sums have a fixed order, and GEMM algorithms
// are remembered in a file once chosen.
#pragma once

#include "engine/cuda/binder.h"
#include "engine/cuda/capture_turn.h"
#include "engine/cuda/mailbox.h"
#include "engine/cuda/memory.h"
#include "engine/cuda/module.h"
#include "engine/cuda/step_graph.h"

namespace fathom::engine::cuda {

class CudaExecutor : public Executor {
 public:
  CudaExecutor(const StepPlan& plan, const CudaOptions& options);
  ~CudaExecutor() override;
  const StepPlan& plan() const override { return plan_; }
  void write(TensorId id, std::span<const float> values) override;
  void write_tokens(TensorId id, std::span<const std::int32_t> values) override;
  void read(TensorId id, std::span<float> values) const override;
  bool draw(TensorId id, const NormalDraw& draw) override;
  void run(Program program, const StepScalars& scalars) override;
  void run_timed(Program program, const StepScalars& scalars,
                 const std::function<void(std::size_t, double)>& report) override;
  bool hold_text(std::span<const std::byte> text, int bytes_per_token) override;
  void write_windows(TensorId inputs, TensorId targets,
                     std::span<const std::uint64_t> starts) override;
  void ask(TensorId id) override;
  float answer() override;
  void wait() const override;
  std::int64_t bytes() const override;

 private:
  /// A host thread must select its device before using it.
  void select() const;

  /// Held while the members are constructed and, being the first, until the last one is destroyed.
  std::unique_lock<std::mutex> turn_{capture_turn()};
  const StepPlan& plan_;
  CudaOptions options_;
  Gpu gpu_;
  Streams streams_;
  Memory memory_;
  GemmLibrary gemms_;
  Mailbox mailbox_;
  EnumArray<Program, StepGraph> programs_;
};

}  // namespace fathom::engine::cuda
