#include "engine/cuda/executor.h"

#include <cmath>
#include <cstring>

#include "engine/require.h"

namespace fathom::engine::cuda {
namespace {

constexpr std::size_t kSlots = 64;            // steps that may be on their way to the device
constexpr std::size_t kSlotBytes = 64 << 10;  // the start of a batch's windows must fit

std::uint16_t to_bf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float from_bf16(std::uint16_t half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

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
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
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
  products_ = std::make_unique<Products>(options.device, options.product_cache, stream_);
  copy_biases();
  check(cudaDeviceSynchronize(), "clearing memory");
  bind_programs();
  products_->save();
}

CudaExecutor::~CudaExecutor() {
  cudaSetDevice(options_.device);
  cudaStreamSynchronize(stream_);
  for (BoundProgram& program : programs_) {
    if (program.graph != nullptr) cudaGraphExecDestroy(program.graph);
  }
  for (Slot& slot : slots_) {
    cudaEventDestroy(slot.free);
    cudaFreeHost(slot.memory);
  }
  products_.reset();
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

/// The activation of u adds the bias of the product that makes u, if it is u's only reader: the
/// product is faster bare.
TensorId CudaExecutor::late_bias(TensorId u) const {
  TensorId bias;
  int readers = 0;
  bool activated = false;
  for (const ForwardOp& op : plan_.forward()) {
    if (const auto* linear = std::get_if<Linear>(&op); linear && linear->y == u) {
      bias = linear->bias;
    }
    const Uses uses = std::visit([](const auto& typed) { return typed.uses(); }, op);
    if (std::find(uses.reads.begin(), uses.reads.end(), u) == uses.reads.end()) continue;
    ++readers;
    activated = std::holds_alternative<Activation>(op);
  }
  return readers == 1 && activated ? bias : TensorId{};
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

void CudaExecutor::bind_programs() {
  std::vector<std::function<void()>> ready;
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, options_.device),
        "device");
  const Context context{plan_,
                        *products_,
                        scratch_,
                        reinterpret_cast<const DeviceScalars*>(scalars_.data()),
                        multiprocessors,
                        [this](TensorId id) { return address(id); },
                        [this](TensorId id) -> const void* {
                          const std::int64_t offset =
                              bias_offsets_[static_cast<std::size_t>(id.index)];
                          return offset < 0 ? nullptr : bias_block_.data() + offset;
                        },
                        [this](TensorId u) { return late_bias(u); },
                        [this](std::shared_ptr<void> memory) { held_.push_back(memory); },
                        [&ready](std::function<void()> call) { ready.push_back(std::move(call)); }};
  for (int which = 0; which < kProgramCount; ++which) {
    const std::vector<Op>& ops = plan_.program(static_cast<Program>(which));
    BoundProgram& program = programs_[static_cast<std::size_t>(which)];
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (FusedOps fused = bind_feed_forward(std::span(ops).subspan(i), context); fused.count > 0) {
        for (auto& [place, op] : fused.bound) {
          program.places.push_back(i + place);
          program.ops.push_back(std::move(op));
        }
        i += fused.count - 1;
        continue;
      }
      program.places.push_back(i);
      BoundOp fused = i + 1 < ops.size() ? bind_fused(ops[i], ops[i + 1], context) : BoundOp{};
      if (fused) {
        program.ops.push_back(std::move(fused));
        ++i;
        continue;
      }
      program.ops.push_back(
          std::visit([&](const auto& typed) { return bind(typed, context); }, ops[i]));
      if (const auto* adamw = std::get_if<AdamW>(&ops[i])) {
        beta1_ = adamw->beta1;
        beta2_ = adamw->beta2;
      }
    }
  }
  scratch_block_ = Block(scratch_->bytes());
  scratch_->place(scratch_block_.data());
  for (const auto& call : ready) call();
  check(cudaStreamSynchronize(stream_), "preparing products");
  // Timing wrote to tensors that a program may only add to.
  for (const Storage storage : {Storage::gradient, Storage::output, Storage::activation}) {
    const Block& block = blocks_[static_cast<std::size_t>(storage)];
    if (block.data() == nullptr) continue;
    check(cudaMemset(block.data(), 0, static_cast<std::size_t>(block.bytes())), "clearing memory");
  }
  check(cudaDeviceSynchronize(), "clearing memory");
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
  Slot& slot = next_slot();
  std::memcpy(slot.memory, &values, sizeof values);
  check(
      cudaMemcpyAsync(scalars_.data(), slot.memory, sizeof values, cudaMemcpyHostToDevice, stream_),
      "sending scalars");
  check(cudaEventRecord(slot.free, stream_), "event");
}

void CudaExecutor::capture(BoundProgram& program) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capturing a step");
  try {
    for (const BoundOp& op : program.ops) op(stream_);
  } catch (...) {
    cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream_, &graph), "capturing a step");
  check(cudaGraphInstantiate(&program.graph, graph, 0), "preparing a step");
  check(cudaGraphDestroy(graph), "preparing a step");
}

void CudaExecutor::run(Program which, const StepScalars& scalars) {
  select();
  BoundProgram& program = programs_[static_cast<std::size_t>(which)];
  if (program.ops.empty()) return;
  send_scalars(scalars);
  // The first run loads every kernel, which a capture may not do; later ones launch the graph.
  if (!program.warm || !options_.graphs) {
    for (const BoundOp& op : program.ops) op(stream_);
    program.warm = true;
    return;
  }
  if (program.graph == nullptr) capture(program);
  check(cudaGraphLaunch(program.graph, stream_), "launching a step");
}

void CudaExecutor::run_timed(Program which, const StepScalars& scalars,
                             const std::function<void(std::size_t, double)>& report) {
  select();
  const BoundProgram& program = programs_[static_cast<std::size_t>(which)];
  send_scalars(scalars);
  std::vector<cudaEvent_t> events(program.ops.size() + 1);
  for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "event");
  cudaEventRecord(events[0], stream_);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    program.ops[i](stream_);
    cudaEventRecord(events[i + 1], stream_);
  }
  wait();
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, events[i], events[i + 1]);
    report(program.places[i], milliseconds * 1e-3);
  }
  for (cudaEvent_t event : events) cudaEventDestroy(event);
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

void CudaExecutor::wait() const {
  check(cudaStreamSynchronize(stream_), "running a step");
}

std::int64_t CudaExecutor::bytes() const {
  std::int64_t total =
      bias_block_.bytes() + scratch_block_.bytes() + text_.bytes() + products_->bytes();
  for (const Block& block : blocks_) total += block.bytes();
  return total;
}

}  // namespace fathom::engine::cuda
