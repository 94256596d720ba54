#include "pretrained/device_model.h"

#include <algorithm>
#include <utility>

#include "core/counts.h"

namespace fathom::pretrained {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

DeviceMatrixPointer send(engine::Inference& math, const Matrix& matrix) {
  if (!matrix.exists()) return nullptr;
  return math.matrix(matrix.values.data(), matrix.rows, matrix.cols);
}

DeviceNorm send(engine::Inference& math, const NormWeights& norm) {
  return {DeviceFloats(math, norm.gain), DeviceFloats(math, norm.bias)};
}

DeviceLayer send(engine::Inference& math, const LayerWeights& w) {
  DeviceLayer layer;
  layer.qkv = send(math, w.qkv);
  layer.out = send(math, w.out);
  layer.up = send(math, w.up);
  layer.down = send(math, w.down);
  layer.qkv_bias = DeviceFloats(math, w.qkv_bias);
  layer.out_bias = DeviceFloats(math, w.out_bias);
  layer.up_bias = DeviceFloats(math, w.up_bias);
  layer.down_bias = DeviceFloats(math, w.down_bias);
  layer.attention_in = send(math, w.attention_in);
  layer.attention_out = send(math, w.attention_out);
  layer.ffn_in = send(math, w.ffn_in);
  layer.ffn_out = send(math, w.ffn_out);
  layer.q_norm = send(math, w.q_norm);
  layer.k_norm = send(math, w.k_norm);
  return layer;
}

}  // namespace

DeviceFloats::DeviceFloats(engine::Inference& math, std::int64_t count)
    : math_(&math), data_(static_cast<float*>(math.allocate(count * kFloat))) {}

DeviceFloats::DeviceFloats(engine::Inference& math, const std::vector<float>& values) {
  if (values.empty()) return;
  *this = DeviceFloats(math, std::ssize(values));
  math.upload(values.data(), std::ssize(values) * kFloat, data_);
}

DeviceFloats::~DeviceFloats() {
  if (data_ != nullptr) math_->release(data_);
}

DeviceFloats::DeviceFloats(DeviceFloats&& other) noexcept
    : math_(other.math_), data_(std::exchange(other.data_, nullptr)) {}

DeviceFloats& DeviceFloats::operator=(DeviceFloats&& other) noexcept {
  std::swap(math_, other.math_);
  std::swap(data_, other.data_);
  return *this;
}

DeviceModel::DeviceModel(Weights& weights, std::unique_ptr<engine::Inference> math)
    : weights_(weights), math_(std::move(math)), layers_(as_size(weights.layout().depth())) {
  const EndWeights& ends = weights.ends();
  if (weights.layout().head != HeadKind::none) {
    ends_.head = send(*math_, ends.head.exists() ? ends.head : ends.tokens);
  }
  ends_.project_out = send(*math_, ends.project_out);
  ends_.masked_dense = send(*math_, ends.masked_dense);
  ends_.head_bias = DeviceFloats(*math_, ends.head_bias);
  ends_.masked_dense_bias = DeviceFloats(*math_, ends.masked_dense_bias);
  ends_.final_norm = send(*math_, ends.final_norm);
  ends_.masked_norm = send(*math_, ends.masked_norm);
  const std::int64_t numbers = static_cast<std::int64_t>(weights.layer_bytes()) / kFloat;
  const std::int64_t each = std::max<std::int64_t>(1, numbers * math_->matrix_bytes());
  stream_bytes_ = math_->free_bytes() / 2;
  capacity_ = as_size(std::max<std::int64_t>(2, stream_bytes_ / each));
}

std::shared_ptr<const DeviceLayer> DeviceModel::layer(std::int64_t index) {
  std::shared_ptr<const DeviceLayer>& slot = layers_.at(as_size(index));
  if (slot) return slot;
  if (kept_.size() >= capacity_) {
    layers_[as_size(kept_.front())].reset();
    kept_.pop_front();
  }
  slot = std::make_shared<const DeviceLayer>(send(*math_, *weights_.layer(index)));
  kept_.push_back(index);
  return slot;
}

}  // namespace fathom::pretrained
