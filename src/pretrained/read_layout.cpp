// config.json in both dialects, as a Layout.
#include <fmt/format.h>

#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "pretrained/families.h"

namespace fathom::pretrained {
namespace {

using Json = nlohmann::json;

/// Values by key; absent and null are the same, another type is a ConfigError.
class Config {
 public:
  Config(const Json& json, const std::string& origin) : json_(json), origin_(origin) {}

  [[noreturn]] void fail(std::string_view key, const std::string& what) const {
    throw ConfigError(fmt::format("{}: config.json: '{}' {}", origin_, key, what));
  }
  const Json* find(std::string_view key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  double number(std::string_view key, double fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_number()) fail(key, "is not a number");
    return value->get<double>();
  }
  std::int64_t whole(std::string_view key, std::int64_t fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    constexpr std::int64_t kMost = std::int64_t{1} << 32;
    if (!value->is_number_integer() || value->get<std::int64_t>() < 0 ||
        value->get<std::int64_t>() > kMost) {
      fail(key, "is not a whole number that fits");
    }
    return value->get<std::int64_t>();
  }
  std::int64_t size(std::string_view key) const {
    const std::int64_t value = whole(key, 0);
    if (value == 0) fail(key, "is missing or zero");
    return value;
  }
  bool flag(std::string_view key, bool fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) fail(key, "is neither true nor false");
    return value->get<bool>();
  }
  std::string text(std::string_view key, const std::string& fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_string()) fail(key, "is not a text");
    return value->get<std::string>();
  }
  std::vector<double> numbers(std::string_view key) const {
    std::vector<double> list;
    const Json* value = find(key);
    if (value == nullptr || !value->is_array()) fail(key, "is not a list of numbers");
    for (const Json& each : *value) {
      if (!each.is_number()) fail(key, "is not a list of numbers");
      list.push_back(each.get<double>());
    }
    return list;
  }
  Config inside(const Json& object) const { return {object, origin_}; }

 private:
  const Json& json_;
  const std::string& origin_;
};

Activation activation_named(const Config& config, std::string_view key, Activation fallback) {
  const std::string name = config.text(key, "");
  if (name.empty()) return fallback;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "relu") return Activation::relu;
  if (name == "gelu") return Activation::gelu;
  if (name == "identity") return Activation::identity;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") {
    return Activation::gelu_tanh;
  }
  config.fail(key, fmt::format("asks for '{}', which is not known", printable(name)));
}

// ---- rotary positions

void read_scaling(const Config& config, const Config& rope, RotarySpec& s) {
  s.factor = rope.number("factor", 1);
  const double context = as_double(config.whole("max_position_embeddings", 2048));
  s.original_context = rope.number("original_max_position_embeddings",
                                   config.number("original_max_position_embeddings", context));
  s.low_frequency = rope.number("low_freq_factor", 1);
  s.high_frequency = rope.number("high_freq_factor", 4);
  s.beta_fast = rope.number("beta_fast", 32);
  s.beta_slow = rope.number("beta_slow", 1);
  s.truncate = rope.flag("truncate", true);
  s.amplitude = rope.number("attention_factor", 0);
  s.mscale = rope.number("mscale", 0);
  s.mscale_all = rope.number("mscale_all_dim", 0);
  if (s.kind == RotaryKind::longrope) {
    s.short_factors = rope.numbers("short_factor");
    s.long_factors = rope.numbers("long_factor");
    if (s.original_context > 0 && context != s.original_context) {
      s.factor = context / s.original_context;
    }
  }
  if (!(s.factor > 0) || !(s.original_context > 0)) rope.fail("factor", "is not positive");
}

RotaryKind rotary_kind(const Config& rope) {
  std::string name = rope.text("rope_type", rope.text("type", "default"));
  if (name == "su") name = "longrope";
  // Phi-3's first releases wrote "yarn" over lists of factors, which is longrope.
  if (name == "yarn" && rope.find("short_factor") != nullptr) name = "longrope";
  for (const RotaryKind kind : kEnumValues<RotaryKind>) {
    if (name == name_of(kind)) return kind;
  }
  rope.fail("rope_type", fmt::format("'{}' is not known; {}", printable(name),
                                     fmt::join(list_names<RotaryKind>(), ", ")));
}

/// `which`: "full_attention" or "sliding_attention", for configs that nest both.
RotarySpec read_rotary(const Family& family, const Config& config, const Layout& layout,
                       const char* which) {
  RotarySpec s;
  s.theta = config.number("rope_theta", config.number("rotary_emb_base", 10000));
  double share =
      config.number("partial_rotary_factor", config.number("rotary_pct", family.rotary_share));
  const Json* rope = config.find("rope_parameters");
  if (rope == nullptr) rope = config.find("rope_scaling");
  if (rope != nullptr && !rope->is_object()) config.fail("rope_scaling", "is not an object");
  if (rope != nullptr && rope->contains(which)) rope = &rope->at(which);
  if (rope != nullptr && rope->is_object()) {
    const Config inner = config.inside(*rope);
    s.kind = rotary_kind(inner);
    s.theta = inner.number("rope_theta", s.theta);
    share = inner.number("partial_rotary_factor", share);
    read_scaling(config, inner, s);
  }
  s.size = static_cast<std::int64_t>(as_double(layout.head_size) * share);
  if (!(s.theta > 1) || s.size < 2 || s.size % 2 != 0 || s.size > layout.head_size) {
    config.fail("rope_theta", "and the rotated share do not make rotary positions");
  }
  if (s.kind == RotaryKind::longrope &&
      (std::ssize(s.short_factors) != s.size / 2 || std::ssize(s.long_factors) != s.size / 2)) {
    config.fail("rope_scaling", fmt::format("needs {} factors", s.size / 2));
  }
  return s;
}

// ---- layers

std::vector<bool> sliding_layers(const Family& family, const Config& config, std::int64_t layers) {
  std::vector<bool> sliding(as_size(layers), false);
  const Json* types = config.find("layer_types");
  if (types != nullptr) {
    if (!types->is_array() || std::ssize(*types) != layers) {
      config.fail("layer_types", fmt::format("does not have {} entries", layers));
    }
    for (std::size_t l = 0; l < sliding.size(); ++l) {
      const std::string type = types->at(l).is_string() ? types->at(l).get<std::string>() : "";
      if (type != "full_attention" && type != "sliding_attention") {
        config.fail("layer_types", fmt::format("holds '{}', which is not known", printable(type)));
      }
      sliding[l] = type == "sliding_attention";
    }
    return sliding;
  }
  const std::int64_t pattern = config.whole("sliding_window_pattern", 6);
  const std::int64_t first = config.whole("max_window_layers", 28);
  const bool used = config.flag("use_sliding_window", false);
  for (std::int64_t l = 0; l < layers; ++l) {
    switch (family.windows) {
      case WindowRule::none:
        break;
      case WindowRule::all:
        sliding[as_size(l)] = true;
        break;
      case WindowRule::even:
        sliding[as_size(l)] = l % 2 == 0;
        break;
      case WindowRule::pattern:
        sliding[as_size(l)] = pattern > 0 && (l + 1) % pattern != 0;
        break;
      case WindowRule::from_layer:
        sliding[as_size(l)] = used && l >= first;
        break;
    }
  }
  return sliding;
}

/// SmolLM3: layers whose entry is 0 have no positions at all; every fourth where the list is
/// absent.
bool is_rotary(const Family& family, const Config& config, std::size_t layer) {
  if (family.type != "smollm3") return true;
  const Json* list = config.find("no_rope_layers");
  if (list == nullptr) {
    const std::int64_t every = config.whole("no_rope_layer_interval", 4);
    return every == 0 || (layer + 1) % as_size(every) != 0;
  }
  if (!list->is_array() || list->size() <= layer || !list->at(layer).is_number_integer()) {
    config.fail("no_rope_layers", "does not have one number for every layer");
  }
  return list->at(layer).get<std::int64_t>() != 0;
}

void read_layers(const Family& family, const Config& config, Layout& layout) {
  const std::int64_t layers = config.size(family.layers_key);
  if (layers > 10000) config.fail(family.layers_key, "is too large");
  const bool rotary = !layout.learned_positions && config.flag("rotary", true);
  const std::vector<bool> sliding = sliding_layers(family, config, layers);
  const std::int64_t window = config.whole("sliding_window", 0);
  if (rotary) {
    layout.rotary.push_back(read_rotary(family, config, layout, "full_attention"));
    RotarySpec local = layout.rotary.front();
    if (config.find("rope_local_base_freq") != nullptr) {
      local = RotarySpec{};
      local.size = layout.head_size;
      local.theta = config.number("rope_local_base_freq", 10000);
    } else if (const Json* rope = config.find("rope_parameters");
               rope != nullptr && rope->is_object() && rope->contains("sliding_attention")) {
      local = read_rotary(family, config, layout, "sliding_attention");
    }
    layout.rotary.push_back(local);
  }
  const double root = config.number("query_pre_attn_scalar", as_double(layout.head_size));
  if (!(root > 0)) config.fail("query_pre_attn_scalar", "is not positive");
  const double scale = config.number("attention_scale", 1 / std::sqrt(root));
  const bool scaled = config.flag("scale_attn_weights", true);
  const bool by_layer = config.flag("scale_attn_by_inverse_layer_idx", false);
  for (std::size_t l = 0; l < as_size(layers); ++l) {
    LayerLayout layer;
    layer.window = sliding[l] ? window : 0;
    if (rotary && is_rotary(family, config, l)) layer.rotary = sliding[l] && window > 0 ? 1 : 0;
    layer.scale = static_cast<float>((scaled ? scale : 1) / (by_layer ? as_double(l + 1) : 1));
    layout.layers.push_back(layer);
  }
}

// ---- what differs by family

void read_own_run(const Config& config, Layout& layout) {
  layout.norm = config.text("norm_kind", "layer") == "rms" ? NormKind::rms : NormKind::layer;
  layout.block = config.text("norm_place", "pre") == "post" ? Block::post : Block::pre;
  layout.final_norm = layout.block == Block::pre;
  layout.gated = config.flag("gated", false);
  layout.learned_positions = config.flag("learned_positions", true);
  layout.branch_scale = static_cast<float>(config.number("branch_multiplier", 1));
  layout.head_scale = static_cast<float>(config.number("head_multiplier", 1));
}

void read_specials(const Family& family, const Config& config, Layout& layout) {
  if (family.type == "fathom") read_own_run(config, layout);
  if (family.type == "gpt_neox" && !config.flag("use_parallel_residual", true)) {
    layout.block = Block::pre;
  }
  if (family.type == "opt") {
    layout.embedding_width = config.whole("word_embed_proj_dim", layout.width);
    if (!config.flag("do_layer_norm_before", true)) {
      layout.block = Block::post;
      layout.final_norm = false;
    }
    if (!config.flag("layer_norm_elementwise_affine", true)) {
      config.fail("layer_norm_elementwise_affine", "false is not known");
    }
  }
  if (family.type == "roberta") layout.position_offset = config.whole("pad_token_id", 1) + 1;
  if (family.base.head == HeadKind::masked) {
    const std::string kind = config.text("position_embedding_type", "absolute");
    if (kind != "absolute") config.fail("position_embedding_type", "is not absolute");
    if (config.flag("is_decoder", false)) config.fail("is_decoder", "true is not known");
  }
  layout.attention_cap = static_cast<float>(config.number("attn_logit_softcapping", 0));
  layout.final_cap = static_cast<float>(config.number("final_logit_softcapping", 0));
}

void refuse_unknown(const Config& config) {
  for (const char* key : {"quantization_config", "num_experts", "num_local_experts",
                          "n_routed_experts", "adapter_attn_dim"}) {
    if (config.find(key) != nullptr) config.fail(key, "asks for something that is not known");
  }
}

}  // namespace

Layout read_layout(const Family& family, const Json& json, const std::string& origin) {
  const Config config(json, origin);
  refuse_unknown(config);
  Layout layout = family.base;
  layout.width = config.size(family.width_key);
  layout.heads = config.size(family.heads_key);
  layout.key_heads = config.whole("num_key_value_heads", layout.heads);
  layout.head_size = config.whole("head_dim", layout.width / layout.heads);
  layout.ffn = config.whole(family.ffn_key, 4 * layout.width);
  layout.vocab = config.size("vocab_size");
  layout.context = config.whole(family.context_key, 2048);
  layout.embedding_width = layout.width;
  if (layout.key_heads == 0 || layout.heads % layout.key_heads != 0 || layout.head_size == 0 ||
      layout.ffn == 0 || layout.context == 0) {
    config.fail(family.heads_key, "does not fit the other sizes");
  }
  if (!family.epsilon_key.empty()) {
    layout.epsilon = config.number(family.epsilon_key, layout.epsilon);
  }
  layout.activation = activation_named(config, family.activation_key, layout.activation);
  if (config.find("hidden_activation") == nullptr && config.find("hidden_act") != nullptr &&
      family.embedding_root) {
    // Gemma's hidden_act "gelu" has always meant the tanh form.
    layout.activation = Activation::gelu_tanh;
  }
  layout.tied = config.flag("tie_word_embeddings", layout.tied);
  if (family.embedding_root) {
    layout.embedding_scale = static_cast<float>(std::sqrt(as_double(layout.width)));
  }
  read_specials(family, config, layout);
  read_layers(family, config, layout);
  return layout;
}

}  // namespace fathom::pretrained
