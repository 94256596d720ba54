// A small random model of any family: its config, and tensors of the shapes that follow from it.
#pragma once

#include "pretrained/families.h"
#include "pretrained/planted_model.h"

namespace fathom::pretrained {

/// Sizes under the keys that the family reads.
inline nlohmann::json planted_config(const std::string& type, const PlantedSize& s = {}) {
  const Family& family = find_family(type, "planted");
  nlohmann::json config{{"model_type", type},
                        {"vocab_size", s.vocab},
                        {"num_key_value_heads", s.key_heads},
                        {"head_dim", s.width / s.heads}};
  if (type == "opt") config["word_embed_proj_dim"] = s.width;
  config[std::string(family.width_key)] = s.width;
  config[std::string(family.layers_key)] = s.layers;
  config[std::string(family.heads_key)] = s.heads;
  config[std::string(family.ffn_key)] = s.ffn;
  config[std::string(family.context_key)] = 64;
  return config;
}

inline PlantedModel random_family(const nlohmann::json& config) {
  const Family& family = find_family(config.at("model_type"), "planted");
  const Layout l = read_layout(family, config, "planted");
  const TensorNames& n = family.names;
  PlantedModel m;
  m.config = config;
  const std::string prefix(n.prefixes.front());
  const auto D = static_cast<std::uint64_t>(l.width), F = static_cast<std::uint64_t>(l.ffn),
             K = static_cast<std::uint64_t>(l.head_size), V = static_cast<std::uint64_t>(l.vocab),
             H = static_cast<std::uint64_t>(l.heads), G = static_cast<std::uint64_t>(l.key_heads);
  const bool classic = l.norm == NormKind::layer;  // these have biases
  const auto matrix = [&](const std::string& name, std::uint64_t out, std::uint64_t in) {
    const double deviation = 1.2 / std::sqrt(static_cast<double>(in));
    m.draw(name + ".weight", family.transposed ? TensorShape{in, out} : TensorShape{out, in},
           deviation);
    if (classic) m.draw(name + ".bias", {out}, 0.1);
  };
  const auto norm = [&](const std::string& name, std::uint64_t size) {
    m.draw(name + ".weight", {size}, 0.1, l.gain_plus_one ? 0 : 1);
    if (classic) m.draw(name + ".bias", {size}, 0.1);
  };
  m.draw(prefix + std::string(n.tokens) + ".weight", {V, D}, 1);
  if (l.learned_positions) {
    const auto rows = static_cast<std::uint64_t>(l.context + l.position_offset);
    m.draw(prefix + std::string(n.positions) + ".weight", {rows, D}, 0.3);
  }
  if (l.token_types) m.draw(prefix + std::string(n.token_types) + ".weight", {2, D}, 0.3);
  if (l.embedding_norm) norm(prefix + std::string(n.embedding_norm), D);
  if (l.final_norm) norm(prefix + std::string(n.final_norm), D);
  if (!l.tied) m.draw(std::string(n.head) + ".weight", {V, D}, 0.3);
  if (l.head == HeadKind::masked) {
    m.draw(std::string(n.masked_dense) + ".weight", {D, D}, 0.2);
    m.draw(std::string(n.masked_dense) + ".bias", {D}, 0.1);
    norm(std::string(n.masked_norm), D);
    m.draw(std::string(n.masked_bias), {V}, 0.1);
  }
  for (std::int64_t index = 0; index < l.depth(); ++index) {
    std::string layer(n.layer);
    layer.replace(layer.find("{}"), 2, std::to_string(index));
    const auto named = [&](std::string_view part) { return prefix + layer + std::string(part); };
    if (family.qkv == QkvForm::separate) {
      matrix(named(n.q), H * K, D);
      matrix(named(n.k), G * K, D);
      matrix(named(n.v), G * K, D);
    } else {
      matrix(named(n.qkv), (H + 2 * G) * K, D);
    }
    matrix(named(n.out), D, H * K);
    if (l.gated && !n.gate_up.empty()) {
      matrix(named(n.gate_up), 2 * F, D);
    } else {
      if (l.gated) matrix(named(n.gate), F, D);
      matrix(named(n.up), F, D);
    }
    matrix(named(n.down), D, F);
    for (const std::string_view part : {n.attention_in, n.attention_out, n.ffn_in, n.ffn_out}) {
      if (!part.empty()) norm(named(part), D);
    }
    if (l.qk_norm != QkNorm::none) {
      const bool whole = l.qk_norm == QkNorm::whole;
      norm(named(n.q_norm), whole ? H * K : K);
      norm(named(n.k_norm), whole ? G * K : K);
    }
  }
  return m;
}

}  // namespace fathom::pretrained
