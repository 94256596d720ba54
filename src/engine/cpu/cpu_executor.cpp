#include "engine/cpu/cpu_executor.h"

#include <omp.h>

#include <atomic>
#include <chrono>
#include <cstring>

#include "core/error.h"
#include "engine/bf16.h"
#include "engine/cpu/cpu_ops.h"
#include "engine/cpu/memory_check.h"
#include "engine/require.h"

namespace fathom::engine {

struct CpuExecutor::State {
  /// Whether to abandon the running program. Once true, it stays true for every thread until the
  /// next program.
  struct Stop {
    std::function<bool()> question;
    std::atomic<bool> came = false;

    static bool ask(void* self) {
      auto& stop = *static_cast<Stop*>(self);
      if (!stop.came && stop.question && stop.question()) stop.came = true;
      return stop.came;
    }
  };

  const StepPlan& plan;
  int threads;
  EnumArray<Storage, cpu::MemoryBlock> blocks;
  std::shared_ptr<cpu::Scratch> scratch = std::make_shared<cpu::Scratch>();
  EnumArray<Program, std::vector<cpu::BoundOp>> programs;
  Stop stop = {};

  void* address(TensorId id) const {
    if (!id.exists()) return nullptr;
    const Tensor& tensor = plan.tensor(id);
    return static_cast<char*>(blocks[tensor.storage].get()) + tensor.offset_bytes;
  }
};

CpuExecutor::CpuExecutor(const StepPlan& plan, const CpuOptions& options)
    : state_(new State{plan, options.threads, {}, {}, {}}) {
  state_->scratch = std::make_shared<cpu::Scratch>();
  omp_set_num_threads(options.threads);  // for this thread's parallel regions; oneDNN reads it too
  std::int64_t bytes = 0;
  for (const Storage storage : kEnumValues<Storage>) bytes += plan.storage_bytes(storage);
  cpu::require_memory(bytes);
  for (const Storage storage : kEnumValues<Storage>) {
    state_->blocks[storage] = cpu::allocate_block(plan.storage_bytes(storage));
  }
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const cpu::Context context{plan,
                             cpu::kernels_for(options.isa),
                             options.threads,
                             engine,
                             std::make_shared<dnnl::stream>(engine),
                             state_->scratch,
                             [state = state_.get()](TensorId id) { return state->address(id); },
                             State::Stop::ask,
                             &state_->stop};
  for (const Program program : kEnumValues<Program>) {
    for (const Op& op : plan.program(program)) {
      state_->programs[program].push_back(
          std::visit([&](const auto& typed) { return cpu::bind(typed, context); }, op));
    }
  }
  state_->scratch->allocate();
}

CpuExecutor::~CpuExecutor() = default;

const StepPlan& CpuExecutor::plan() const {
  return state_->plan;
}

void CpuExecutor::write(TensorId id, std::span<const float> values) {
  const Tensor& tensor = state_->plan.tensor(id);
  require(tensor.size() == static_cast<std::int64_t>(values.size()), "write: sizes differ");
  if (tensor.dtype == DType::f32) {
    std::memcpy(state_->address(id), values.data(), values.size_bytes());
    return;
  }
  require(tensor.dtype == DType::bf16, "write: floats for a tensor of integers");
  auto* target = static_cast<std::uint16_t*>(state_->address(id));
  for (std::size_t i = 0; i < values.size(); ++i) target[i] = to_bf16(values[i]);
}

void CpuExecutor::write_tokens(TensorId id, std::span<const std::int32_t> values) {
  const Tensor& tensor = state_->plan.tensor(id);
  require(tensor.dtype == DType::i32, "write: integers for a tensor of floats");
  require(tensor.size() == static_cast<std::int64_t>(values.size()), "write: sizes differ");
  std::memcpy(state_->address(id), values.data(), values.size_bytes());
}

void CpuExecutor::read(TensorId id, std::span<float> values) const {
  const Tensor& tensor = state_->plan.tensor(id);
  require(tensor.size() == static_cast<std::int64_t>(values.size()), "read: sizes differ");
  if (tensor.dtype == DType::f32) {
    std::memcpy(values.data(), state_->address(id), values.size_bytes());
    return;
  }
  require(tensor.dtype == DType::bf16, "read: floats from a tensor of integers");
  const auto* source = static_cast<const std::uint16_t*>(state_->address(id));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = from_bf16(source[i]);
}

void CpuExecutor::hear(const std::function<bool()>& stop) {
  state_->stop.question = stop;
}

void CpuExecutor::run(Program program, const StepScalars& scalars) {
  omp_set_num_threads(state_->threads);
  state_->stop.came = false;
  for (const auto& op : state_->programs[program]) {
    op(scalars);
    if (State::Stop::ask(&state_->stop)) throw StoppedError("stopped in the middle of a step");
  }
}

void CpuExecutor::run_timed(Program program, const StepScalars& scalars,
                            const std::function<void(std::size_t, double)>& report) {
  using Clock = std::chrono::steady_clock;
  omp_set_num_threads(state_->threads);
  const auto& ops = state_->programs[program];
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto start = Clock::now();
    ops[i](scalars);
    report(i, std::chrono::duration<double>(Clock::now() - start).count());
  }
}

std::int64_t CpuExecutor::bytes() const {
  std::int64_t total = state_->scratch->bytes();
  for (const Storage storage : kEnumValues<Storage>) {
    total += state_->plan.storage_bytes(storage);
  }
  return total;
}

}  // namespace fathom::engine
