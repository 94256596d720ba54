#include "pretrained/device_forward.h"

#include <algorithm>

#include "core/counts.h"
#include "pretrained/block.h"

namespace fathom::pretrained {
namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);
constexpr std::int64_t kLogitBytes = std::int64_t{256} << 20;  // of logits held at once

engine::RowActivation device_activation(Activation kind) {
  switch (kind) {
    case Activation::relu:
      return engine::RowActivation::relu;
    case Activation::gelu:
      return engine::RowActivation::gelu;
    case Activation::gelu_tanh:
      return engine::RowActivation::gelu_tanh;
    case Activation::silu:
      return engine::RowActivation::silu;
    case Activation::identity:
      break;
  }
  return engine::RowActivation::identity;
}

std::int64_t wide_size(const Layout& l) {
  return (l.gated ? 2 : 1) * l.ffn;
}

}  // namespace

DeviceForward::DeviceForward(DeviceModel& model, const Forward& host, std::int64_t windows)
    : model_(model),
      layout_(model.layout()),
      math_(model.math()),
      windows_(windows),
      tokens_(host.tokens()),
      normed_(math_, rows() * layout_.width),
      results_(math_, 2 * rows() * layout_.width),
      qkv_(math_, rows() * layout_.qkv_rows()),
      mixed_(math_, rows() * layout_.heads * layout_.head_size),
      wide_(math_, rows() * wide_size(layout_)),
      active_(math_, rows() * layout_.ffn),
      head_value_(math_, layout_.head_size) {
  for (const Forward::Turn& turn : host.turns()) {
    turns_.push_back({DeviceFloats(math_, turn.cosines), DeviceFloats(math_, turn.sines)});
  }
}

std::int64_t DeviceForward::bytes_per_window(const Layout& l, std::int64_t tokens) {
  const std::int64_t widest = std::max({l.width, l.ffn, l.heads * l.head_size});
  // The buffers above, and inputs of products as three bf16 parts.
  return tokens * kFloatBytes *
         (3 * l.width + l.qkv_rows() + l.heads * l.head_size + wide_size(l) + l.ffn + 2 * widest);
}

void DeviceForward::norm(const DeviceNorm& weights, std::int64_t rows, const float* x, float* y) {
  const std::int64_t D = layout_.width;
  math_.normalise({rows, 1, D, D, layout_.norm == NormKind::layer, layout_.epsilon}, x,
                  weights.gain.data(), weights.bias.data(), y);
}

engine::SequenceShape DeviceForward::shape_of(const LayerLayout& layer) const {
  return {windows_,     tokens_,        layout_.heads, layout_.key_heads,    layout_.head_size,
          layer.window, layout_.causal, layer.scale,   layout_.attention_cap};
}

void DeviceForward::attend(const DeviceLayer& layer, std::int64_t index, const float* x,
                           const LayerEdit& edit, const DeviceWatch& watch, float* y) {
  const LayerLayout& own = layout_.layers[as_size(index)];
  const engine::SequenceShape shape = shape_of(own);
  const std::int64_t H = layout_.heads, G = layout_.key_heads, K = layout_.head_size;
  float* qkv = qkv_.data();
  float* mixed = mixed_.data();
  math_.multiply(x, rows(), *layer.qkv, layer.qkv_bias.data(), qkv);
  if (layout_.qk_norm != QkNorm::none) {
    const bool whole = layout_.qk_norm == QkNorm::whole;
    const auto normalise = [&](std::int64_t heads, const DeviceNorm& weights, float* part) {
      const std::int64_t parts = whole ? 1 : heads;
      math_.normalise({rows(), parts, heads * K / parts, shape.stride(), false, layout_.epsilon},
                      part, weights.gain.data(), nullptr, part);
    };
    normalise(H, layer.q_norm, qkv);
    normalise(G, layer.k_norm, qkv + H * K);
  }
  if (own.rotary >= 0) {
    const Turn& turn = turns_[as_size(own.rotary)];
    math_.rotate(shape, layout_.rotary[as_size(own.rotary)].size / 2, turn.cosines.data(),
                 turn.sines.data(), qkv);
  }
  math_.attend(shape, qkv, mixed);
  if (watch.heads) {
    if (!weights_.exists()) weights_ = DeviceFloats(math_, tokens_ * tokens_);
    for (std::int64_t head = 0; head < H; ++head) {
      math_.attention_weights(shape, head, qkv, weights_.data());
      watch.heads(head, weights_.data());
    }
  }
  for (const SilentHead& silent : edit.silent) {
    if (silent.value != nullptr) math_.upload(silent.value, K * kFloatBytes, head_value_.data());
    math_.set_columns(rows(), H * K, silent.head * K, K,
                      silent.value == nullptr ? nullptr : head_value_.data(), mixed);
  }
  if (watch.head_outputs != nullptr) {
    math_.copy(mixed, rows() * H * K * kFloatBytes, watch.head_outputs);
  }
  math_.multiply(mixed, rows(), *layer.out, layer.out_bias.data(), y);
}

void DeviceForward::feed_forward(const DeviceLayer& layer, const float* x, float* y) {
  math_.multiply(x, rows(), *layer.up, layer.up_bias.data(), wide_.data());
  math_.activate(wide_.data(), rows(), layout_.ffn, device_activation(layout_.activation),
                 layout_.gated, active_.data());
  math_.multiply(active_.data(), rows(), *layer.down, layer.down_bias.data(), y);
}

/// One layer's work on all windows.
struct DeviceForward::Work {
  DeviceForward& forward;
  const DeviceLayer& layer;
  std::int64_t index;
  float* h;
  const LayerEdit& edit;
  const DeviceWatch& watch;
  std::int64_t count = forward.rows() * forward.layout_.width;
  float* results = forward.results_.data();  // of attention, of the feed-forward

  const float* reads(const DeviceNorm& weights) const {
    if (!weights.exists()) return h;
    forward.norm(weights, forward.rows(), h, forward.normed_.data());
    return forward.normed_.data();
  }
  float* attend(const float* x) const {
    forward.attend(layer, index, x, edit, watch, results);
    return results;
  }
  float* feed_forward(const float* x) const {
    forward.feed_forward(layer, x, results + count);
    return results + count;
  }
  void add(float* y, const DeviceNorm& weights) const {
    const bool post = forward.layout_.block == Block::post;
    if (!post && weights.exists()) forward.norm(weights, forward.rows(), y, y);
    forward.math_.add_scaled(h, y, count, forward.layout_.branch_scale);
    if (post && weights.exists()) forward.norm(weights, forward.rows(), h, h);
  }
  void middle() const {
    if (watch.middle != nullptr) forward.math_.copy(h, count * kFloatBytes, watch.middle);
  }
};

void DeviceForward::run_layer(std::int64_t index, float* h, const LayerEdit& edit,
                              const DeviceWatch& watch) {
  const std::shared_ptr<const DeviceLayer> layer = model_.layer(index);
  Work work{*this, *layer, index, h, edit, watch};
  run_block(work, layout_.block, *layer, edit.attention, edit.ffn);
}

void DeviceForward::logits(const float* h, std::int64_t rows, float* out) {
  const DeviceEnds& ends = model_.ends();
  const std::int64_t D = layout_.width;
  if (rows > final_rows_) {
    final_ = DeviceFloats(math_, 2 * rows * D);
    final_rows_ = rows;
  }
  float* spare = final_.data();
  float* normed = spare + rows * D;
  const float* x = h;
  if (ends.final_norm.exists()) {
    norm(ends.final_norm, rows, x, normed);
    x = normed;
  }
  if (ends.masked_dense) {
    math_.multiply(x, rows, *ends.masked_dense, ends.masked_dense_bias.data(), spare);
    math_.activate(spare, rows, D, device_activation(layout_.activation), false, normed);
    norm(ends.masked_norm, rows, normed, normed);
    x = normed;
  }
  if (ends.project_out) {
    math_.multiply(x, rows, *ends.project_out, nullptr, spare);
    x = spare;
  }
  math_.multiply(x, rows, *ends.head, ends.head_bias.data(), out);
  if (layout_.head_scale != 1 || layout_.final_cap > 0) {
    math_.scale_and_cap(out, rows * layout_.vocab, layout_.head_scale, layout_.final_cap);
  }
}

void DeviceForward::losses(const float* h, std::span<const data::TokenId> targets, float* out) {
  const std::int64_t count = std::ssize(targets), V = layout_.vocab, D = layout_.width;
  if (!logits_.exists()) {
    logit_rows_ = std::clamp<std::int64_t>(kLogitBytes / (V * kFloatBytes), 1, rows());
    logits_ = DeviceFloats(math_, logit_rows_ * V);
    losses_ = DeviceFloats(math_, rows());
    targets_ = DeviceFloats(math_, rows());  // as wide as ids
  }
  static_assert(sizeof(data::TokenId) == sizeof(float));
  auto* ids = reinterpret_cast<std::int32_t*>(targets_.data());
  math_.upload(targets.data(), count * kFloatBytes, ids);
  for (std::int64_t begin = 0; begin < count; begin += logit_rows_) {
    const std::int64_t size = std::min(logit_rows_, count - begin);
    logits(h + begin * D, size, logits_.data());
    math_.losses(logits_.data(), size, V, ids + begin, losses_.data() + begin);
  }
  math_.download(losses_.data(), count * kFloatBytes, out);
}

HostedDeviceForward::HostedDeviceForward(DeviceModel& model, const Weights& weights,
                                         std::int64_t tokens)
    : Forward(weights, tokens), model_(model) {}

DeviceForward& HostedDeviceForward::device() const {
  if (!device_) device_ = std::make_unique<DeviceForward>(model_, *this, 1);
  return *device_;
}

void HostedDeviceForward::run_layer(const LayerWeights&, std::int64_t index, float* h, Scratch&,
                                    const LayerEdit& edit, const LayerWatch& watch) const {
  const Layout& layout = model_.layout();
  const std::int64_t T = tokens(), state_bytes = T * layout.width * kFloatBytes;
  const std::int64_t output_bytes = T * layout.heads * layout.head_size * kFloatBytes;
  std::vector<std::vector<float>> seen;
  {
    const std::lock_guard lock(model_.mutex());
    engine::Inference& math = model_.math();
    const DeviceFloats state(math, T * layout.width);
    DeviceFloats middle, outputs;
    DeviceWatch own;
    if (watch.middle != nullptr) {
      middle = DeviceFloats(math, T * layout.width);
      own.middle = middle.data();
    }
    if (watch.head_outputs != nullptr) {
      outputs = DeviceFloats(math, output_bytes / kFloatBytes);
      own.head_outputs = outputs.data();
    }
    if (watch.heads) {
      own.heads = [&](std::int64_t, const float* weights) {
        seen.emplace_back(as_size(T * T));
        math.download(weights, T * T * kFloatBytes, seen.back().data());
      };
    }
    math.upload(h, state_bytes, state.data());
    device().run_layer(index, state.data(), edit, own);
    math.download(state.data(), state_bytes, h);
    if (middle.exists()) math.download(middle.data(), state_bytes, watch.middle);
    if (outputs.exists()) math.download(outputs.data(), output_bytes, watch.head_outputs);
  }
  for (std::size_t head = 0; head < seen.size(); ++head) {
    watch.heads(static_cast<std::int64_t>(head), seen[head].data());
  }
}

void HostedDeviceForward::logits(const float* h, std::int64_t rows, Scratch&, float* out) const {
  const Layout& layout = model_.layout();
  const std::lock_guard lock(model_.mutex());
  engine::Inference& math = model_.math();
  const DeviceFloats state(math, rows * layout.width), result(math, rows * layout.vocab);
  math.upload(h, rows * layout.width * kFloatBytes, state.data());
  device().logits(state.data(), rows, result.data());
  math.download(result.data(), rows * layout.vocab * kFloatBytes, out);
}

}  // namespace fathom::pretrained
