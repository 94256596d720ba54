// A model's weights on a GPU. Layers go there when they are first needed and stay while they fit; a
// model larger than the GPU's memory is sent again for every sweep.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/cuda/inference.h"
#include "pretrained/weights.h"

namespace fathom::pretrained {

/// Memory of the device, zeroed; empty: absent.
class DeviceFloats {
 public:
  DeviceFloats() = default;
  DeviceFloats(engine::Inference& math, std::int64_t count);
  DeviceFloats(engine::Inference& math, const std::vector<float>& values);
  ~DeviceFloats();
  DeviceFloats(DeviceFloats&& other) noexcept;
  DeviceFloats& operator=(DeviceFloats&& other) noexcept;

  float* data() const { return data_; }
  bool exists() const { return data_ != nullptr; }

 private:
  engine::Inference* math_ = nullptr;
  float* data_ = nullptr;
};

using DeviceMatrixPointer = std::unique_ptr<engine::DeviceMatrix>;

struct DeviceNorm {
  DeviceFloats gain, bias;
  bool exists() const { return gain.exists(); }
};

/// The fields of LayerWeights and EndWeights, as far as a GPU needs them.
struct DeviceLayer {
  DeviceMatrixPointer qkv, out, up, down;
  DeviceFloats qkv_bias, out_bias, up_bias, down_bias;
  DeviceNorm attention_in, attention_out, ffn_in, ffn_out, q_norm, k_norm;
};

struct DeviceEnds {
  DeviceMatrixPointer head, project_out, masked_dense;
  DeviceFloats head_bias, masked_dense_bias;
  DeviceNorm final_norm, masked_norm;
};

class DeviceModel {
 public:
  /// The weights must outlive it.
  DeviceModel(Weights& weights, std::unique_ptr<engine::Inference> math);

  const Layout& layout() const { return weights_.layout(); }
  engine::Inference& math() const { return *math_; }
  const DeviceEnds& ends() const { return ends_; }
  std::shared_ptr<const DeviceLayer> layer(std::int64_t index);
  /// The device memory that layers leave for streams and buffers.
  std::int64_t stream_bytes() const { return stream_bytes_; }
  /// Callers from several threads hold it while using anything of this model.
  std::mutex& mutex() { return mutex_; }

 private:
  Weights& weights_;
  std::unique_ptr<engine::Inference> math_;
  DeviceEnds ends_;
  std::vector<std::shared_ptr<const DeviceLayer>> layers_;
  std::deque<std::int64_t> kept_;  // in the order they were sent
  std::size_t capacity_ = 0;
  std::int64_t stream_bytes_ = 0;
  std::mutex mutex_;
};

}  // namespace fathom::pretrained
