// Windows of one length through a model on a GPU, all at once: the stream h is [windows, T, D] in
// the device's memory. The order of work is that of forward.h (block.h).
#pragma once

#include <functional>

#include "pretrained/device_model.h"
#include "pretrained/forward.h"

namespace fathom::pretrained {

struct DeviceWatch {
  float* middle = nullptr;        // device [rows, D]: the stream after attention
  float* head_outputs = nullptr;  // device [rows, H K]
  /// For a single window: every head's weights [T, T] in the device's memory.
  std::function<void(std::int64_t head, const float* weights)> heads;
};

class DeviceForward {
 public:
  /// `host` is the forward pass for windows of this length; only its tables are used here.
  DeviceForward(DeviceModel& model, const Forward& host, std::int64_t windows);

  std::int64_t windows() const { return windows_; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t rows() const { return windows_ * tokens_; }
  void run_layer(std::int64_t index, float* h, const LayerEdit& edit, const DeviceWatch& watch);
  /// The logits [rows, V] of `rows` states.
  void logits(const float* h, std::int64_t rows, float* out);
  /// -ln p of all targets (host), 0 where a target is negative, into `out` (host).
  void losses(const float* h, std::span<const data::TokenId> targets, float* out);

  /// Device memory for each window, without the caller's streams.
  static std::int64_t bytes_per_window(const Layout& layout, std::int64_t tokens);

 private:
  struct Work;
  engine::SequenceShape shape_of(const LayerLayout& layer) const;
  void attend(const DeviceLayer& layer, std::int64_t index, const float* x, const LayerEdit& edit,
              const DeviceWatch& watch, float* y);
  void feed_forward(const DeviceLayer& layer, const float* x, float* y);
  void norm(const DeviceNorm& weights, std::int64_t rows, const float* x, float* y);

  DeviceModel& model_;
  const Layout& layout_;
  engine::Inference& math_;
  std::int64_t windows_, tokens_;
  struct Turn {
    DeviceFloats cosines, sines;
  };
  std::vector<Turn> turns_;
  DeviceFloats normed_, results_, qkv_, mixed_, wide_, active_, weights_, head_value_;
  DeviceFloats final_, logits_, losses_, targets_;
  std::int64_t final_rows_ = 0, logit_rows_ = 0;
};

/// One window on a GPU behind the interface of the CPU's forward pass: streams come from the
/// caller's memory and go back there. May be used from several threads, which take turns.
class HostedDeviceForward final : public Forward {
 public:
  HostedDeviceForward(DeviceModel& model, const Weights& weights, std::int64_t tokens);

  /// `layer` is ignored: the device has its own.
  void run_layer(const LayerWeights& layer, std::int64_t index, float* h, Scratch& scratch,
                 const LayerEdit& edit, const LayerWatch& watch) const override;
  void logits(const float* h, std::int64_t rows, Scratch& scratch, float* out) const override;

 private:
  /// Made when first needed; the model's mutex is held.
  DeviceForward& device() const;

  DeviceModel& model_;
  mutable std::unique_ptr<DeviceForward> device_;
};

}  // namespace fathom::pretrained
