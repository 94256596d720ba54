// Runs a plan on one GPU. Every op is bound once to its memory, kernels and product algorithms; a
// program is then captured into a CUDA graph, and a run is one small copy (the step's scalars) and
// one launch. Nothing is allocated and nothing is waited for inside a run.
//
// Nobody needs the gradient of a weight before the norm of all gradients, so those products run on
// a stream of their own, of low priority, and fill what the chain of the other kernels leaves idle.
// engine/lanes.h says from the bytes each op touches where one stream has to wait for the other.
//
// The same plan, inputs and GPU give the same bits: sums have a fixed order, and product algorithms
// are remembered in a file once chosen.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <vector>

#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/module.h"
#include "engine/plan/lanes.h"

namespace fathom::engine::cuda {

/// Zeroed device memory.
class Block {
 public:
  explicit Block(std::int64_t bytes = 0);
  ~Block();
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  char* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

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
  struct Task {
    BoundOp run;
    std::size_t place;  // of its op in the plan's program
    Lane lane;
    cudaEvent_t done;  // nullptr: nobody on the other lane waits for it
  };
  struct BoundProgram {
    std::vector<Task> tasks;
    LaneSchedule schedule;
    bool warm = false;
    cudaGraphExec_t graph = nullptr;
  };
  struct TaskList;
  struct Slot;  // pinned memory for the numbers of one step, and when it is free again
  struct Answer {
    float* value = nullptr;  // pinned
    cudaEvent_t known = nullptr;
  };

  void* address(TensorId id) const;
  Footprint footprint(const Op& op) const;
  void bind_programs();
  bool bind_maker(std::vector<Op>& ops, std::size_t i, const Context& context,
                  TaskList& list) const;
  bool bind_activation(std::vector<Op>& ops, std::size_t i, const Context& context,
                       const Context& aside, TaskList& list) const;
  bool bind_norm(std::vector<Op>& ops, std::size_t i, const Context& context, const Context& aside,
                 TaskList& list) const;
  void bind_unhurried(const Op& op, std::size_t place, const Context& context, const Context& aside,
                      TaskList& list) const;
  BoundProgram bind_program(Program which, const Context& shared);
  void copy_biases();
  TensorId late_bias(TensorId u) const;
  void send(void* to, const void* from, std::size_t bytes);
  Slot& next_slot();
  void send_scalars(const StepScalars& scalars);
  void launch(const BoundProgram& program) const;
  void capture(BoundProgram& program);
  void select() const;

  const StepPlan& plan_;
  CudaOptions options_;
  cudaStream_t stream_ = nullptr;
  cudaStream_t side_ = nullptr;  // only forks from the other and joins it again, within a program
  cudaEvent_t fork_ = nullptr;
  std::array<Block, kStorageCount> blocks_;
  Block bias_block_, scratch_block_, side_scratch_block_, scalars_, text_, starts_;
  int bytes_per_token_ = 0;
  std::vector<std::int64_t> bias_offsets_;  // by tensor; -1: not a bias of a bf16 product
  std::shared_ptr<Scratch> scratch_ = std::make_shared<Scratch>();
  std::shared_ptr<Scratch> side_scratch_ = std::make_shared<Scratch>();
  std::vector<std::shared_ptr<Scratch>> between_;  // of an op and its side work, in turns
  std::size_t next_between_ = 0;
  std::vector<Block> between_blocks_;
  std::unique_ptr<Products> products_;
  std::vector<Block> held_;
  std::array<BoundProgram, kProgramCount> programs_;
  std::vector<Slot> slots_;
  std::size_t next_slot_ = 0;
  std::deque<Answer> asked_, unused_;
  float beta1_ = 0, beta2_ = 0;
  std::optional<DeviceScalars> sent_;  // what the device has
};

}  // namespace fathom::engine::cuda
