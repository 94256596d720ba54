#include "engine/cuda/executor.h"

#include <cmath>
#include <cstring>

#include "engine/bf16.h"
#include "engine/cuda/draw.h"
#include "engine/require.h"

namespace fathom::engine::cuda {
namespace {

constexpr std::size_t kSlots = 64;            // steps that may be on their way to the device
constexpr std::size_t kSlotBytes = 64 << 10;  // the start of a batch's windows must fit

}  // namespace

Block::Block(std::int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<std::size_t>(bytes)) != cudaSuccess) {
    cudaGetLastError();
    throw DeviceError("not enough GPU memory for this model: " + std::to_string(bytes >> 20) +
                      " MiB more are needed; use a smaller batch");
  }
  data_ = static_cast<char*>(memory);
  check(cudaMemset(data_, 0, static_cast<std::size_t>(bytes)), "clearing memory");
}

Block::~Block() {
  cudaFree(data_);
}

Block::Block(Block&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

struct CudaExecutor::Slot {
  char* memory = nullptr;
  cudaEvent_t free = nullptr;
};

CudaExecutor::CudaExecutor(const StepPlan& plan, const CudaOptions& options)
    : plan_(plan), options_(options) {
  select();
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream");
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "stream");
  check(cudaStreamCreateWithPriority(&side_, cudaStreamNonBlocking, least), "stream");
  check(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming), "event");
  for (int storage = 0; storage < kStorageCount; ++storage) {
    blocks_[static_cast<std::size_t>(storage)] =
        Block(plan.storage_bytes(static_cast<Storage>(storage)));
  }
  scalars_ = Block(sizeof(DeviceScalars));
  slots_.resize(kSlots);
  for (Slot& slot : slots_) {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, kSlotBytes), "pinned memory");
    slot.memory = static_cast<char*>(memory);
    check(cudaEventCreateWithFlags(&slot.free, cudaEventDisableTiming), "event");
  }
  products_ = std::make_unique<Products>(options.device, options.product_cache, stream_,
                                         options.lanes > 1 ? side_ : nullptr);
  copy_biases();
  check(cudaDeviceSynchronize(), "clearing memory");
  bind_programs();
  products_->save();
  products_->shrink();
}

CudaExecutor::~CudaExecutor() {
  cudaSetDevice(options_.device);
  cudaStreamSynchronize(stream_);
  for (BoundProgram& program : programs_) {
    if (program.graph != nullptr) cudaGraphExecDestroy(program.graph);
    for (const Task& task : program.tasks) {
      if (task.done != nullptr) cudaEventDestroy(task.done);
    }
  }
  for (Slot& slot : slots_) {
    cudaEventDestroy(slot.free);
    cudaFreeHost(slot.memory);
  }
  for (const std::deque<Answer>* answers : {&asked_, &unused_}) {
    for (const Answer& answer : *answers) {
      cudaEventDestroy(answer.known);
      cudaFreeHost(answer.value);
    }
  }
  products_.reset();
  cudaEventDestroy(fork_);
  cudaStreamDestroy(side_);
  cudaStreamDestroy(stream_);
}

/// A host thread must name its device before it talks to it.
void CudaExecutor::select() const {
  check(cudaSetDevice(options_.device), "device");
}

void* CudaExecutor::address(TensorId id) const {
  if (!id.exists()) return nullptr;
  const Tensor& tensor = plan_.tensor(id);
  return blocks_[static_cast<std::size_t>(tensor.storage)].data() + tensor.offset_bytes;
}

/// Biases of products with bf16 results are added in bf16: they get copies beside the plan's own,
/// written whenever those are.
void CudaExecutor::copy_biases() {
  bias_offsets_.assign(plan_.tensors().size(), -1);
  std::int64_t bytes = 0;
  for (const ForwardOp& op : plan_.forward()) {
    const auto* linear = std::get_if<Linear>(&op);
    if (linear == nullptr || !linear->bias.exists()) continue;
    if (plan_.tensor(linear->y).dtype != DType::bf16) continue;
    std::int64_t& offset = bias_offsets_[static_cast<std::size_t>(linear->bias.index)];
    if (offset >= 0) continue;
    offset = bytes;
    bytes += (plan_.tensor(linear->bias).size() * 2 + 255) / 256 * 256;
  }
  bias_block_ = Block(bytes);
}

void CudaExecutor::write(TensorId id, std::span<const float> values) {
  select();
  const Tensor& tensor = plan_.tensor(id);
  require(tensor.size() == static_cast<std::int64_t>(values.size()), "write: sizes differ");
  if (tensor.dtype == DType::f32) {
    return send(address(id), values.data(), values.size_bytes());
  }
  require(tensor.dtype == DType::bf16, "write: floats for a tensor of integers");
  std::vector<std::uint16_t> halves(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) halves[i] = to_bf16(values[i]);
  send(address(id), halves.data(), halves.size() * 2);
}

void CudaExecutor::write_tokens(TensorId id, std::span<const std::int32_t> values) {
  select();
  const Tensor& tensor = plan_.tensor(id);
  require(tensor.dtype == DType::i32, "write: integers for a tensor of floats");
  require(tensor.size() == static_cast<std::int64_t>(values.size()), "write: sizes differ");
  send(address(id), values.data(), values.size_bytes());
}

// On our own stream: a plain cudaMemcpy from pageable memory may return before its last bytes have
// reached the device, and a stream that does not block would not wait for them.
void CudaExecutor::send(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "sending values");
  wait();
}

void CudaExecutor::read(TensorId id, std::span<float> values) const {
  select();
  const Tensor& tensor = plan_.tensor(id);
  require(tensor.size() == static_cast<std::int64_t>(values.size()), "read: sizes differ");
  if (tensor.dtype == DType::f32) {
    check(cudaMemcpyAsync(values.data(), address(id), values.size_bytes(), cudaMemcpyDeviceToHost,
                          stream_),
          "reading values");
    return wait();
  }
  require(tensor.dtype == DType::bf16, "read: floats from a tensor of integers");
  std::vector<std::uint16_t> halves(values.size());
  check(cudaMemcpyAsync(halves.data(), address(id), halves.size() * 2, cudaMemcpyDeviceToHost,
                        stream_),
        "reading values");
  wait();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = from_bf16(halves[i]);
}

bool CudaExecutor::draw(TensorId id, const NormalDraw& draw) {
  select();
  const Tensor& tensor = plan_.tensor(id);
  if (tensor.dtype != DType::f32) return false;
  wait();
  auto* values = static_cast<float*>(address(id));
  const DrawResult drawn = draw_normal(draw, values, tensor.size());
  for (const std::int64_t element : drawn.doubtful) {
    const float value = draw.value(element);
    send(values + element, &value, sizeof value);
  }
  return drawn.complete;
}

CudaExecutor::Slot& CudaExecutor::next_slot() {
  Slot& slot = slots_[next_slot_];
  next_slot_ = (next_slot_ + 1) % slots_.size();
  check(cudaEventSynchronize(slot.free), "waiting for the device");
  return slot;
}

void CudaExecutor::send_scalars(const StepScalars& scalars) {
  const auto correction = [&](float beta) {
    const double power = std::pow(static_cast<double>(beta), static_cast<double>(scalars.step));
    return static_cast<float>(1 / (1 - power));
  };
  const DeviceScalars values{scalars.loss_scale, scalars.learning_rate, scalars.clip_norm,
                             correction(beta1_), correction(beta2_),    scalars.draw};
  if (sent_ == values) return;  // the update of a step takes those of its training program
  sent_ = values;
  Slot& slot = next_slot();
  std::memcpy(slot.memory, &values, sizeof values);
  check(
      cudaMemcpyAsync(scalars_.data(), slot.memory, sizeof values, cudaMemcpyHostToDevice, stream_),
      "sending scalars");
  check(cudaEventRecord(slot.free, stream_), "event");
}

bool CudaExecutor::hold_text(std::span<const std::byte> text, int bytes_per_token) {
  select();
  wait();
  text_ = Block(static_cast<std::int64_t>(text.size()));
  bytes_per_token_ = bytes_per_token;
  check(cudaDeviceSynchronize(), "clearing memory");
  send(text_.data(), text.data(), text.size());
  return true;
}

void CudaExecutor::write_windows(TensorId inputs, TensorId targets,
                                 std::span<const std::uint64_t> starts) {
  select();
  require(text_.data() != nullptr, "windows of a text that is not held");
  require(starts.size_bytes() <= kSlotBytes, "too many windows in a batch");
  if (starts_.bytes() < static_cast<std::int64_t>(starts.size_bytes())) {
    wait();
    starts_ = Block(static_cast<std::int64_t>(starts.size_bytes()));
    check(cudaDeviceSynchronize(), "clearing memory");
  }
  Slot& slot = next_slot();
  std::memcpy(slot.memory, starts.data(), starts.size_bytes());
  check(cudaMemcpyAsync(starts_.data(), slot.memory, starts.size_bytes(), cudaMemcpyHostToDevice,
                        stream_),
        "sending windows");
  check(cudaEventRecord(slot.free, stream_), "event");
  const auto batch = static_cast<std::int64_t>(starts.size());
  gather_windows(text_.data(), bytes_per_token_,
                 reinterpret_cast<const std::uint64_t*>(starts_.data()), batch,
                 plan_.tensor(inputs).size() / batch, static_cast<std::int32_t*>(address(inputs)),
                 static_cast<std::int32_t*>(address(targets)), stream_);
}

void CudaExecutor::ask(TensorId id) {
  select();
  require(plan_.tensor(id).dtype == DType::f32 && plan_.tensor(id).size() == 1,
          "ask: not one number");
  if (unused_.empty()) {
    Answer fresh;
    void* memory = nullptr;
    check(cudaMallocHost(&memory, sizeof(float)), "pinned memory");
    fresh.value = static_cast<float*>(memory);
    check(cudaEventCreateWithFlags(&fresh.known, cudaEventDisableTiming), "event");
    unused_.push_back(fresh);
  }
  const Answer& next = unused_.front();
  check(cudaMemcpyAsync(next.value, address(id), sizeof(float), cudaMemcpyDeviceToHost, stream_),
        "reading a number");
  check(cudaEventRecord(next.known, stream_), "event");
  asked_.push_back(next);
  unused_.pop_front();
}

float CudaExecutor::answer() {
  select();
  require(!asked_.empty(), "answer: nothing was asked");
  const Answer first = asked_.front();
  asked_.pop_front();
  unused_.push_back(first);
  check(cudaEventSynchronize(first.known), "running a step");
  return *first.value;
}

void CudaExecutor::wait() const {
  check(cudaStreamSynchronize(stream_), "running a step");
}

std::int64_t CudaExecutor::bytes() const {
  std::int64_t total = bias_block_.bytes() + scratch_block_.bytes() + side_scratch_block_.bytes() +
                       text_.bytes() + products_->bytes();
  for (const Block& block : blocks_) total += block.bytes();
  for (const Block& block : between_blocks_) total += block.bytes();
  for (const Block& block : held_) total += block.bytes();
  return total;
}

}  // namespace fathom::engine::cuda
