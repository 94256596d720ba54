// Small models in memory, with weights drawn from a seed or written by hand, for tests that plant a
// truth and look for it.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/random.h"
#include "pretrained/checkpoint.h"
#include "pretrained/weights.h"

namespace fathom::pretrained {

struct PlantedTensor {
  TensorShape shape;
  std::vector<float> values;
};
using PlantedTensors = std::map<std::string, PlantedTensor>;

class PlantedSource : public TensorSource {
 public:
  explicit PlantedSource(PlantedTensors tensors) : tensors_(std::move(tensors)) {}
  std::vector<std::string> names() const override {
    std::vector<std::string> list;
    for (const auto& [name, tensor] : tensors_) list.push_back(name);
    return list;
  }
  const TensorShape* find(const std::string& name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second.shape;
  }
  void read(const std::string& name, std::span<float> out) const override {
    const auto& values = tensors_.at(name).values;
    std::copy(values.begin(), values.end(), out.begin());
  }

 private:
  PlantedTensors tensors_;
};

/// A checkpoint's two halves, to be edited before it is opened.
struct PlantedModel {
  nlohmann::json config;
  PlantedTensors tensors;

  Checkpoint checkpoint() const {
    Checkpoint c;
    c.origin = "planted";
    *c.config = config;
    c.tensors = std::make_unique<PlantedSource>(tensors);
    c.tokenizer_note = "planted";
    return c;
  }
  Weights weights() const { return Weights(checkpoint(), std::uint64_t{1} << 40); }
  std::vector<float>& at(const std::string& name) { return tensors.at(name).values; }
  std::vector<float>& layer(std::int64_t l, const std::string& part) {
    return at(fmt::format("model.layers.{}.{}.weight", l, part));
  }
  void draw(const std::string& name, TensorShape shape, double deviation, double mean = 0) {
    std::size_t count = 1;
    for (const std::uint64_t n : shape) count *= n;
    std::uint64_t seed = 7;
    for (const char c : name) seed = seed * 31 + static_cast<unsigned char>(c);
    const RandomStream stream(seed, 0);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(mean + deviation * stream.normal(i));
    }
    tensors[name] = {std::move(shape), std::move(values)};
  }
};

struct PlantedSize {
  std::uint64_t layers = 4, width = 32, heads = 4, key_heads = 2, ffn = 48, vocab = 29;
};

inline PlantedModel random_llama(const PlantedSize& s = {}) {
  PlantedModel m;
  m.config = {{"model_type", "llama"},
              {"hidden_size", s.width},
              {"num_hidden_layers", s.layers},
              {"num_attention_heads", s.heads},
              {"num_key_value_heads", s.key_heads},
              {"intermediate_size", s.ffn},
              {"vocab_size", s.vocab},
              {"max_position_embeddings", 64},
              {"rms_norm_eps", 1e-5}};
  const std::uint64_t D = s.width, K = D / s.heads, G = s.key_heads * K;
  const double root = 1 / std::sqrt(static_cast<double>(D));
  m.draw("model.embed_tokens.weight", {s.vocab, D}, 1);
  m.draw("model.norm.weight", {D}, 0.1, 1);
  m.draw("lm_head.weight", {s.vocab, D}, 2 * root);
  for (std::uint64_t l = 0; l < s.layers; ++l) {
    const std::string p = fmt::format("model.layers.{}.", l);
    m.draw(p + "input_layernorm.weight", {D}, 0.1, 1);
    m.draw(p + "post_attention_layernorm.weight", {D}, 0.1, 1);
    m.draw(p + "self_attn.q_proj.weight", {D, D}, 1.5 * root);
    m.draw(p + "self_attn.k_proj.weight", {G, D}, 1.5 * root);
    m.draw(p + "self_attn.v_proj.weight", {G, D}, root);
    m.draw(p + "self_attn.o_proj.weight", {D, D}, root);
    m.draw(p + "mlp.gate_proj.weight", {s.ffn, D}, root);
    m.draw(p + "mlp.up_proj.weight", {s.ffn, D}, root);
    m.draw(p + "mlp.down_proj.weight", {D, s.ffn}, root);
  }
  return m;
}

inline std::vector<data::TokenId> planted_ids(std::size_t count, std::size_t vocab,
                                              std::uint64_t seed) {
  const RandomStream stream(seed, 1);
  std::vector<data::TokenId> ids(count);
  for (std::size_t i = 0; i < count; ++i)
    ids[i] = static_cast<data::TokenId>(stream.below(i, vocab));
  return ids;
}

}  // namespace fathom::pretrained
