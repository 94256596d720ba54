#include "pretrained/weights.h"

#include <algorithm>

#include "core/counts.h"
#include "core/error.h"
#include "core/json_text.h"
#include "pretrained/weight_reader.h"

namespace fathom::pretrained {
namespace {

std::int64_t layer_parameters(const Layout& l) {
  const std::int64_t up = (l.gated ? 2 : 1) * l.ffn;
  return l.width * (l.qkv_rows() + l.heads * l.head_size + up + l.ffn);
}

std::string model_type(const nlohmann::json& config, const std::string& origin) {
  const auto found = config.find("model_type");
  if (found == config.end() || !found->is_string()) {
    throw ConfigError(origin + ": config.json has no 'model_type'");
  }
  const std::string type = *found;
  return type == "gemma3" ? "gemma3_text" : type;
}

/// The language part of a multimodal model.
const nlohmann::json& text_config(const nlohmann::json& config) {
  const auto found = config.find("text_config");
  return found != config.end() && found->is_object() ? *found : config;
}

}  // namespace

Weights::Weights(Checkpoint checkpoint, std::uint64_t memory_bytes)
    : checkpoint_(std::move(checkpoint)) {
  const nlohmann::json& config = text_config(*checkpoint_.config);
  family_ = &find_family(model_type(config, checkpoint_.origin), checkpoint_.origin);
  WeightReader reader(checkpoint_, *family_, read_layout(*family_, config, checkpoint_.origin));
  reader.check_all_known();
  ends_ = reader.read_ends();
  layout_ = reader.layout();
  layers_.resize(as_size(layout_.depth()));
  layer_bytes_ = as_size(layer_parameters(layout_)) * sizeof(float);
  capacity_ = std::max<std::size_t>(2, memory_bytes / layer_bytes_);
  for (const std::string& name : checkpoint_.tensors->names()) {
    std::int64_t count = 1;
    for (const std::uint64_t size : *checkpoint_.tensors->find(name)) count *= as_signed(size);
    parameters_ += count;
  }
}

std::shared_ptr<const LayerWeights> Weights::layer(std::int64_t index) {
  std::shared_ptr<const LayerWeights>& slot = layers_.at(as_size(index));
  if (slot) return slot;
  if (kept_.size() >= capacity_) {
    layers_[as_size(kept_.front())].reset();
    kept_.pop_front();
  }
  WeightReader reader(checkpoint_, *family_, layout_);
  slot = std::make_shared<const LayerWeights>(reader.read_layer(index));
  kept_.push_back(index);
  return slot;
}

}  // namespace fathom::pretrained
