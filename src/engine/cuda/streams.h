// The streams and events of an executor, destroyed with it.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "engine/cuda/check.h"
#include "engine/plan/lanes.h"

namespace fathom::engine::cuda {

/// An event without timing.
class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "event"); }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  void record(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "event"); }
  void delay(cudaStream_t stream) const { check(cudaStreamWaitEvent(stream, event_), "event"); }
  void wait(const char* what) const { check(cudaEventSynchronize(event_), what); }

 private:
  cudaEvent_t event_ = nullptr;
};

/// One stream for each lane; the side lane, of low priority, only forks from the main one and joins
/// it again, within a program.
class Streams {
 public:
  Streams() {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream");
    check(cudaStreamCreateWithPriority(&streams_[Lane::main], cudaStreamNonBlocking, greatest),
          "stream");
    check(cudaStreamCreateWithPriority(&streams_[Lane::side], cudaStreamNonBlocking, least),
          "stream");
  }
  ~Streams() {
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  cudaStream_t operator[](Lane lane) const { return streams_[lane]; }
  cudaStream_t main() const { return streams_[Lane::main]; }
  void wait() const { check(cudaStreamSynchronize(main()), "running a step"); }

 private:
  EnumArray<Lane, cudaStream_t> streams_;
};

}  // namespace fathom::engine::cuda
