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

/// Draws the tensors that a family's layout asks for.
class FamilyDraw {
 public:
  explicit FamilyDraw(const nlohmann::json& config)
      : family_(find_family(config.at("model_type"), "planted")),
        layout_(read_layout(family_, config, "planted")),
        prefix_(family_.names.prefixes.front()) {
    model_.config = config;
  }

  PlantedModel draw() {
    draw_ends();
    for (std::int64_t layer = 0; layer < layout_.depth(); ++layer) draw_layer(layer);
    return std::move(model_);
  }

 private:
  using Size = std::uint64_t;

  bool has_biases() const { return layout_.norm == NormKind::layer; }
  void matrix(const std::string& name, Size out, Size in) {
    const double deviation = 1.2 / std::sqrt(static_cast<double>(in));
    model_.draw(name + ".weight", family_.transposed ? TensorShape{in, out} : TensorShape{out, in},
                deviation);
    if (has_biases()) model_.draw(name + ".bias", {out}, 0.1);
  }
  void norm(const std::string& name, Size size) {
    model_.draw(name + ".weight", {size}, 0.1, layout_.gain_plus_one ? 0 : 1);
    if (has_biases()) model_.draw(name + ".bias", {size}, 0.1);
  }

  /// Before the first layer and after the last.
  void draw_ends() {
    const TensorNames& n = family_.names;
    const auto D = static_cast<Size>(layout_.width), V = static_cast<Size>(layout_.vocab);
    const auto named = [&](std::string_view part) { return prefix_ + std::string(part); };
    model_.draw(named(n.tokens) + ".weight", {V, D}, 1);
    if (layout_.learned_positions) {
      const auto rows = static_cast<Size>(layout_.context + layout_.position_offset);
      model_.draw(named(n.positions) + ".weight", {rows, D}, 0.3);
    }
    if (layout_.token_types) model_.draw(named(n.token_types) + ".weight", {2, D}, 0.3);
    if (layout_.embedding_norm) norm(named(n.embedding_norm), D);
    if (layout_.final_norm) norm(named(n.final_norm), D);
    if (!layout_.tied) model_.draw(std::string(n.head) + ".weight", {V, D}, 0.3);
    if (layout_.head != HeadKind::masked) return;
    model_.draw(std::string(n.masked_dense) + ".weight", {D, D}, 0.2);
    model_.draw(std::string(n.masked_dense) + ".bias", {D}, 0.1);
    norm(std::string(n.masked_norm), D);
    model_.draw(std::string(n.masked_bias), {V}, 0.1);
  }

  void draw_layer(std::int64_t index) {
    const TensorNames& n = family_.names;
    const Layout& l = layout_;
    const auto D = static_cast<Size>(l.width), F = static_cast<Size>(l.ffn),
               K = static_cast<Size>(l.head_size), H = static_cast<Size>(l.heads),
               G = static_cast<Size>(l.key_heads);
    std::string layer(n.layer);
    layer.replace(layer.find("{}"), 2, std::to_string(index));
    const auto named = [&](std::string_view part) { return prefix_ + layer + std::string(part); };
    if (family_.qkv == QkvForm::separate) {
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

  const Family& family_;
  Layout layout_;
  std::string prefix_;
  PlantedModel model_;
};

inline PlantedModel random_family(const nlohmann::json& config) {
  return FamilyDraw(config).draw();
}

}  // namespace fathom::pretrained
