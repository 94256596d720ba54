#include "engine/cuda/mailbox.h"

#include <cmath>
#include <cstring>

#include "engine/require.h"

namespace fathom::engine::cuda {
namespace {

constexpr std::size_t kSlots = 64;           // copies that may be on their way to the device
constexpr std::size_t kSlotBytes = 4 << 10;  // to begin with; a slot grows to what it carries

}  // namespace

PinnedBlock::PinnedBlock(std::size_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "pinned memory");
  data_ = static_cast<char*>(memory);
}

PinnedBlock::~PinnedBlock() {
  cudaFreeHost(data_);
}

Mailbox::Mailbox(cudaStream_t stream, float beta1, float beta2)
    : stream_(stream), beta1_(beta1), beta2_(beta2), scalars_(sizeof(DeviceScalars)) {
  for (std::size_t i = 0; i < kSlots; ++i) slots_.push_back({PinnedBlock(kSlotBytes), Event()});
}

// On our own stream: a plain cudaMemcpy from pageable memory may return before its last bytes have
// reached the device, and a non-blocking stream would not wait for them.
void Mailbox::send(void* to, const void* from, std::size_t bytes) const {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "sending values");
  check(cudaStreamSynchronize(stream_), "sending values");
}

void Mailbox::receive(void* to, const void* from, std::size_t bytes) const {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "reading values");
  check(cudaStreamSynchronize(stream_), "running a step");
}

void Mailbox::post(void* to, const void* from, std::size_t bytes) {
  Slot& slot = slots_[next_slot_];
  next_slot_ = (next_slot_ + 1) % slots_.size();
  slot.free.wait("waiting for the device");
  if (slot.memory.bytes() < bytes) slot.memory = PinnedBlock(bytes);
  std::memcpy(slot.memory.data(), from, bytes);
  check(cudaMemcpyAsync(to, slot.memory.data(), bytes, cudaMemcpyHostToDevice, stream_),
        "sending values");
  slot.free.record(stream_);
}

void Mailbox::send_scalars(const StepScalars& scalars) {
  const auto correction = [&](float beta) {
    const double power = std::pow(static_cast<double>(beta), static_cast<double>(scalars.step));
    return static_cast<float>(1 / (1 - power));
  };
  const DeviceScalars values{scalars.loss_scale, scalars.learning_rate, scalars.clip_norm,
                             correction(beta1_), correction(beta2_),    scalars.draw};
  if (sent_ == values) return;  // the update of a step uses those of its training program
  sent_ = values;
  post(scalars_.data(), &values, sizeof values);
}

void Mailbox::hold_text(std::span<const std::byte> text, int bytes_per_token) {
  check(cudaStreamSynchronize(stream_), "running a step");
  text_ = Block(static_cast<std::int64_t>(text.size()));
  bytes_per_token_ = bytes_per_token;
  check(cudaDeviceSynchronize(), "clearing memory");
  send(text_.data(), text.data(), text.size());
}

void Mailbox::write_windows(std::span<const std::uint64_t> starts, std::int64_t tokens,
                            std::int32_t* inputs, std::int32_t* targets) {
  require(text_.data() != nullptr, "windows of a text that is not held");
  if (starts_.bytes() < static_cast<std::int64_t>(starts.size_bytes())) {
    check(cudaStreamSynchronize(stream_), "running a step");
    starts_ = Block(static_cast<std::int64_t>(starts.size_bytes()));
    check(cudaDeviceSynchronize(), "clearing memory");
  }
  post(starts_.data(), starts.data(), starts.size_bytes());
  const auto batch = static_cast<std::int64_t>(starts.size());
  gather_windows(text_.data(), bytes_per_token_,
                 reinterpret_cast<const std::uint64_t*>(starts_.data()), batch, tokens / batch,
                 inputs, targets, stream_);
}

void Mailbox::ask(const float* value) {
  if (unused_.empty()) unused_.push_back({PinnedBlock(sizeof(float)), Event()});
  Answer& next = unused_.front();
  check(cudaMemcpyAsync(next.value.data(), value, sizeof(float), cudaMemcpyDeviceToHost, stream_),
        "reading a number");
  next.known.record(stream_);
  asked_.push_back(std::move(next));
  unused_.pop_front();
}

float Mailbox::answer() {
  require(!asked_.empty(), "answer: nothing was asked");
  unused_.push_back(std::move(asked_.front()));
  asked_.pop_front();
  const Answer& first = unused_.back();
  first.known.wait("running a step");
  float value = 0;
  std::memcpy(&value, first.value.data(), sizeof value);
  return value;
}

}  // namespace fathom::engine::cuda
