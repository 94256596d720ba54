// What passes between host and device while steps run, without either waiting for the other: the
// scalars of a step and its tokens, or the starts of their windows, go to the device through pinned
// slots; requested losses come back.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "engine/cuda/memory.h"
#include "engine/cuda/streams.h"
#include "engine/plan/step_scalars.h"

namespace fathom::engine::cuda {

/// Host memory that the device copies from and to.
class PinnedBlock {
 public:
  explicit PinnedBlock(std::size_t bytes);
  ~PinnedBlock();
  PinnedBlock(PinnedBlock&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  PinnedBlock& operator=(PinnedBlock&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class Mailbox {
 public:
  /// The betas are AdamW's.
  Mailbox(cudaStream_t stream, float beta1, float beta2);

  /// Copies that are done when the call returns.
  void send(void* to, const void* from, std::size_t bytes) const;
  void receive(void* to, const void* from, std::size_t bytes) const;
  /// A copy that happens after all work submitted so far and before all later work; `from` may be
  /// reused when the call returns.
  void post(void* to, const void* from, std::size_t bytes);

  /// Where kernels find the scalars that were sent last.
  const DeviceScalars* scalars() const {
    return reinterpret_cast<const DeviceScalars*>(scalars_.data());
  }
  void send_scalars(const StepScalars& scalars);

  /// Keeps a text of 2- or 4-byte token ids on the device.
  void hold_text(std::span<const std::byte> text, int bytes_per_token);
  /// Row b of `inputs` begins at starts[b] of the text, row b of `targets` one token later.
  void write_windows(std::span<const std::uint64_t> starts, std::int64_t tokens,
                     std::int32_t* inputs, std::int32_t* targets);

  /// Copies a number to the host when all work submitted so far is done. Requests are answered in
  /// order; answer() waits for that work, not for later work.
  void ask(const float* value);
  float answer();

  std::int64_t bytes() const { return text_.bytes(); }

 private:
  struct Slot {
    PinnedBlock memory;
    Event free;  // when the device has read it
  };
  struct Answer {
    PinnedBlock value;
    Event known;
  };
  cudaStream_t stream_;
  float beta1_, beta2_;
  Block scalars_, text_, starts_;
  int bytes_per_token_ = 0;
  std::optional<DeviceScalars> sent_;  // what the device has
  std::vector<Slot> slots_;
  std::size_t next_slot_ = 0;
  std::deque<Answer> asked_, unused_;
};

}  // namespace fathom::engine::cuda
