#include "probe/own_run.h"

#include <fmt/format.h>

#include <map>

#include "core/counts.h"
#include "core/error.h"
#include "core/json_text.h"
#include "model/parametrisation.h"
#include "train/run_folder.h"
#include "train/weights.h"

namespace fathom::probe {
namespace {

namespace fs = std::filesystem;
using model::ModelSpec;

void refuse_unlike(const ModelSpec& spec, const std::string& origin) {
  const auto refuse = [&](const char* what) {
    throw ConfigError(fmt::format("{}: a model with {} cannot be probed", origin, what));
  };
  if (spec.attention != engine::AttentionKind::softmax) refuse("attention other than softmax");
  if (spec.mask != engine::MaskKind::causal) refuse("a mask other than causal");
  if (spec.has_pattern()) refuse("a pattern of keys");
  if (spec.keys != model::KeySource::tokens) refuse("keys that are not those of its tokens");
  if (spec.slice != 0) refuse("layers that have a slice of the stream");
  if (spec.attention_norm) refuse("a norm of what the heads give");
  if (spec.has_uneven_layers()) refuse("layers of different heads or feed-forwards");
  if (!spec.residual) refuse("no residual stream");
  if (!spec.feed_forward) refuse("no feed-forward");
  if (spec.norm == model::NormPlace::none) refuse("no norms");
  if (spec.embedding_rank != 0) refuse("an embedding of low rank");
  if (spec.depth_scheme != model::DepthScheme::none) refuse("a depth scheme of post-norm");
  std::string plain;
  for (std::int64_t l = 0; l < spec.layers; ++l) plain += "sf";
  if (spec.sublayers() != plain) refuse("sublayers in another order");
}

nlohmann::json config_of(const ModelSpec& spec) {
  const bool gated = spec.activation == model::FeedForward::swiglu;
  std::string activation = name_of(spec.activation);
  if (gated) activation = "silu";
  if (spec.activation == model::FeedForward::gelu_tanh) activation = "gelu_new";
  return {{"model_type", "fathom"},
          {"hidden_size", spec.width},
          {"num_hidden_layers", spec.layers},
          {"num_attention_heads", spec.heads},
          {"num_key_value_heads", spec.resolved_key_heads()},
          {"head_dim", spec.resolved_head_size()},
          {"intermediate_size", spec.resolved_ffn()},
          {"vocab_size", spec.vocab},
          {"max_position_embeddings", spec.context},
          {"tie_word_embeddings", spec.tied},
          {"norm_epsilon", spec.norm_epsilon},
          {"norm_kind", name_of(spec.norm_kind)},
          {"norm_place", name_of(spec.norm)},
          {"hidden_act", activation},
          {"gated", gated},
          {"learned_positions", spec.positions == model::Positions::learned},
          {"rotary", spec.positions == model::Positions::rotary},
          {"rope_theta", spec.rotary_base},
          {"sliding_window", spec.window},
          {"attention_scale", model::attention_scale(spec)},
          {"branch_multiplier", model::branch_multiplier(spec)},
          {"head_multiplier", model::head_multiplier(spec)}};
}

/// "sub.6.attention.qkv.weight" to "layers.3.attention.qkv.weight".
std::string plain_name(const std::string& own, bool gated) {
  std::string name = own;
  if (name.starts_with("sub.")) {
    const std::size_t dot = name.find('.', 4);
    const std::int64_t sub = std::stoll(name.substr(4, dot - 4));
    name = fmt::format("layers.{}{}", sub / 2, name.substr(dot));
  }
  const std::size_t up = name.find(".ffn.up.");
  if (gated && up != name.npos) name.replace(up, 8, ".ffn.gate_up.");
  if (name.ends_with(".gain")) name.replace(name.size() - 5, 5, ".weight");
  return name;
}

class OwnSource : public pretrained::TensorSource {
 public:
  explicit OwnSource(train::Weights weights) : weights_(std::move(weights)) {
    const bool gated = weights_.spec.activation == model::FeedForward::swiglu;
    for (const auto& [own, values] : weights_.parameters) {
      const std::string name = plain_name(own, gated);
      tensors_[name] = {shape_of(name, values.size()), &values};
    }
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> list;
    for (const auto& [name, tensor] : tensors_) list.push_back(name);
    return list;
  }
  const pretrained::TensorShape* find(const std::string& name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second.shape;
  }
  void read(const std::string& name, std::span<float> out) const override {
    const std::vector<float>& values = *tensors_.at(name).values;
    std::copy(values.begin(), values.end(), out.begin());
  }

 private:
  struct Tensor {
    pretrained::TensorShape shape;
    const std::vector<float>* values;
  };
  /// Norms and biases are vectors; the columns of a matrix follow from what it reads.
  pretrained::TensorShape shape_of(const std::string& name, std::size_t count) const {
    const ModelSpec& spec = weights_.spec;
    if (name.ends_with(".bias") || name.find("norm.") != name.npos) return {count};
    std::size_t cols = as_size(spec.width);
    if (name.find(".ffn.down.") != name.npos) cols = as_size(spec.resolved_ffn());
    if (name.find(".attention.out.") != name.npos) {
      cols = as_size(spec.heads * spec.resolved_head_size());
    }
    return {count / cols, cols};
  }

  train::Weights weights_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace

pretrained::Checkpoint open_model(const fs::path& path) {
  const bool own = fs::exists(train::RunFolder(path).spec()) || fs::exists(path / "model.toml");
  if (!own) return pretrained::open_checkpoint(path);
  train::Weights weights = train::load_weights(path);
  refuse_unlike(weights.spec, path.string());
  pretrained::Checkpoint checkpoint;
  checkpoint.origin = path.string();
  *checkpoint.config = config_of(weights.spec);
  checkpoint.tokenizer = std::move(weights.tokenizer);
  checkpoint.tokenizer_note = weights.tokenizer_note;
  checkpoint.tensors = std::make_unique<OwnSource>(std::move(weights));
  return checkpoint;
}

}  // namespace fathom::probe
