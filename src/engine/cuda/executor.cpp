#include "engine/cuda/executor.h"

#include "engine/bf16.h"
#include "engine/cuda/draw.h"
#include "engine/require.h"

namespace fathom::engine::cuda {
namespace {

/// Selects the device before anything is created on it.
Gpu selected(const CudaOptions& options) {
  check(cudaSetDevice(options.device), "device");
  return find_gpu(options.device, options.generic);
}

AdamW adamw_of(const StepPlan& plan) {
  for (const Op& op : plan.program(Program::update)) {
    if (const auto* adamw = std::get_if<AdamW>(&op)) return *adamw;
  }
  return {};
}

}  // namespace

CudaExecutor::CudaExecutor(const StepPlan& plan, const CudaOptions& options)
    : plan_(plan),
      options_(options),
      gpu_(selected(options)),
      memory_(plan),
      gemms_(options.device, options.gemm_cache, streams_.main(),
             options.lanes > 1 ? streams_[Lane::side] : nullptr),
      mailbox_(streams_.main(), adamw_of(plan).beta1, adamw_of(plan).beta2) {
  check(cudaDeviceSynchronize(), "clearing memory");
  auto bound = bind_programs(plan, options, gpu_, memory_, gemms_, mailbox_.scalars());
  for (const Program which : kEnumValues<Program>) {
    programs_[which] = StepGraph(std::move(bound[which]), streams_);
  }
  gemms_.save();
  gemms_.shrink();
  turn_.unlock();
}

CudaExecutor::~CudaExecutor() {
  turn_.lock();
  cudaSetDevice(options_.device);
  cudaStreamSynchronize(streams_.main());
}

void CudaExecutor::select() const {
  check(cudaSetDevice(options_.device), "device");
}

void CudaExecutor::write(TensorId id, std::span<const float> values) {
  select();
  const Tensor& tensor = plan_.tensor(id);
  require(tensor.size() == static_cast<std::int64_t>(values.size()), "write: sizes differ");
  if (tensor.dtype == DType::f32) {
    return mailbox_.send(memory_.address(id), values.data(), values.size_bytes());
  }
  require(tensor.dtype == DType::bf16, "write: floats for a tensor of integers");
  std::vector<std::uint16_t> halves(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) halves[i] = to_bf16(values[i]);
  mailbox_.send(memory_.address(id), halves.data(), halves.size() * 2);
}

void CudaExecutor::write_tokens(TensorId id, std::span<const std::int32_t> values) {
  select();
  const Tensor& tensor = plan_.tensor(id);
  require(tensor.dtype == DType::i32, "write: integers for a tensor of floats");
  require(tensor.size() == static_cast<std::int64_t>(values.size()), "write: sizes differ");
  const std::lock_guard lock(turn_);
  mailbox_.post(memory_.address(id), values.data(), values.size_bytes());
}

void CudaExecutor::read(TensorId id, std::span<float> values) const {
  select();
  const Tensor& tensor = plan_.tensor(id);
  require(tensor.size() == static_cast<std::int64_t>(values.size()), "read: sizes differ");
  if (tensor.dtype == DType::f32) {
    return mailbox_.receive(values.data(), memory_.address(id), values.size_bytes());
  }
  require(tensor.dtype == DType::bf16, "read: floats from a tensor of integers");
  std::vector<std::uint16_t> halves(values.size());
  mailbox_.receive(halves.data(), memory_.address(id), halves.size() * 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = from_bf16(halves[i]);
}

bool CudaExecutor::draw(TensorId id, const NormalDraw& draw) {
  select();
  const Tensor& tensor = plan_.tensor(id);
  if (tensor.dtype != DType::f32) return false;
  wait();
  const std::lock_guard lock(turn_);
  auto* values = static_cast<float*>(memory_.address(id));
  const DrawResult drawn = draw_normal(draw, values, tensor.size());
  for (const std::int64_t element : drawn.doubtful) {
    const float value = draw.value(element);
    mailbox_.send(values + element, &value, sizeof value);
  }
  return drawn.complete;
}

void CudaExecutor::run(Program which, const StepScalars& scalars) {
  select();
  StepGraph& program = programs_[which];
  if (program.empty()) return;
  mailbox_.send_scalars(scalars);
  if (program.captured()) return program.replay();
  const std::lock_guard lock(turn_);
  program.run(options_.graphs);
}

void CudaExecutor::run_timed(Program which, const StepScalars& scalars,
                             const std::function<void(std::size_t, double)>& report) {
  select();
  const std::lock_guard lock(turn_);
  mailbox_.send_scalars(scalars);
  programs_[which].run_timed(report);
}

bool CudaExecutor::hold_text(std::span<const std::byte> text, int bytes_per_token) {
  select();
  const std::lock_guard lock(turn_);
  mailbox_.hold_text(text, bytes_per_token);
  return true;
}

void CudaExecutor::write_windows(TensorId inputs, TensorId targets,
                                 std::span<const std::uint64_t> starts) {
  select();
  const std::lock_guard lock(turn_);
  mailbox_.write_windows(starts, plan_.tensor(inputs).size(),
                         static_cast<std::int32_t*>(memory_.address(inputs)),
                         static_cast<std::int32_t*>(memory_.address(targets)));
}

void CudaExecutor::ask(TensorId id) {
  select();
  require(plan_.tensor(id).dtype == DType::f32 && plan_.tensor(id).size() == 1,
          "ask: not one number");
  mailbox_.ask(static_cast<const float*>(memory_.address(id)));
}

float CudaExecutor::answer() {
  select();
  return mailbox_.answer();
}

void CudaExecutor::wait() const {
  streams_.wait();
}

std::int64_t CudaExecutor::bytes() const {
  return memory_.bytes() + gemms_.bytes() + mailbox_.bytes();
}

}  // namespace fathom::engine::cuda
