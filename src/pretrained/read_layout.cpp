// config.json in both dialects, as a Layout.
#include <fmt/format.h>

#include <cmath>

#include "core/counts.h"
#include "core/json_text.h"
#include "core/text.h"
#include "pretrained/config_keys.h"
#include "pretrained/read_rotary.h"

namespace fathom::pretrained {
namespace {

using Json = nlohmann::json;

Activation activation_named(const ConfigKeys& config, std::string_view key, Activation fallback) {
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

// ---- layers

std::vector<bool> sliding_layers(const Family& family, const ConfigKeys& config,
                                 std::int64_t layers) {
  std::vector<bool> sliding(as_size(layers), false);
  const std::int64_t pattern = config.whole("sliding_window_pattern", 6);
  const std::int64_t first = config.whole("max_window_layers", 28);
  const bool used = config.flag("use_sliding_window", false);
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
  if (family.type == "smollm3" && used) {
    config.fail("use_sliding_window", "true needs 'layer_types', which is missing");
  }
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
bool is_rotary(const Family& family, const ConfigKeys& config, std::size_t layer) {
  if (family.type != "smollm3") return true;
  const Json* list = config.find("no_rope_layers");
  const std::int64_t every = config.whole("no_rope_layer_interval", 4);
  if (list == nullptr) {
    return every == 0 || (layer + 1) % as_size(every) != 0;
  }
  if (!list->is_array() || list->size() <= layer || !list->at(layer).is_number_integer()) {
    config.fail("no_rope_layers", "does not have one number for every layer");
  }
  return list->at(layer).get<std::int64_t>() != 0;
}

double score_scale(const Family& family, const ConfigKeys& config, const Layout& layout) {
  double root = as_double(layout.head_size);
  if (family.embedding_root) root = config.number("query_pre_attn_scalar", root);
  const double scale = 1 / std::sqrt(root);
  return family.type == "fathom" ? config.number("attention_scale", scale) : scale;
}

void read_layers(const Family& family, const ConfigKeys& config, Layout& layout) {
  const std::int64_t layers = config.size(family.layers_key);
  if (layers > 10000) config.fail(family.layers_key, "is too large");
  const bool rotary =
      !layout.learned_positions && (family.type != "fathom" || config.flag("rotary", true));
  const std::vector<bool> sliding = sliding_layers(family, config, layers);
  const std::int64_t window = config.whole("sliding_window", 0);
  if (rotary) layout.rotary = read_rotary(family, config, layout);
  double scale = score_scale(family, config, layout);
  bool by_layer = false;
  if (family.type == "gpt2") {
    if (!config.flag("scale_attn_weights", true)) scale = 1;
    by_layer = config.flag("scale_attn_by_inverse_layer_idx", false);
  }
  if (!(scale > 0) || !(scale < 1e6)) config.fail("query_pre_attn_scalar", "is not positive");
  for (std::size_t l = 0; l < as_size(layers); ++l) {
    LayerLayout layer;
    layer.window = sliding[l] ? window : 0;
    if (rotary && is_rotary(family, config, l)) layer.rotary = sliding[l] ? 1 : 0;
    layer.scale = static_cast<float>(scale / (by_layer ? as_double(l + 1) : 1));
    layout.layers.push_back(layer);
  }
}

// ---- what differs by family

void read_own_run(const ConfigKeys& config, Layout& layout) {
  layout.norm = config.text("norm_kind", "layer") == "rms" ? NormKind::rms : NormKind::layer;
  layout.block = config.text("norm_place", "pre") == "post" ? Block::post : Block::pre;
  layout.final_norm = layout.block == Block::pre;
  layout.gated = config.flag("gated", false);
  layout.learned_positions = config.flag("learned_positions", true);
  layout.branch_scale = static_cast<float>(config.number("branch_multiplier", 1));
  layout.head_scale = static_cast<float>(config.number("head_multiplier", 1));
}

void read_opt(const ConfigKeys& config, Layout& layout) {
  layout.embedding_width = config.whole("word_embed_proj_dim", layout.width);
  if (!config.flag("do_layer_norm_before", true)) layout.block = Block::post;
  if (layout.block == Block::post || config.flag("_remove_final_layer_norm", false)) {
    layout.final_norm = false;
  }
  if (!config.flag("layer_norm_elementwise_affine", true)) {
    config.fail("layer_norm_elementwise_affine", "false is not known");
  }
  config.flag("enable_bias", true);  // the tensors say so
}

void read_encoder(const Family& family, const ConfigKeys& config, Layout& layout) {
  if (family.type == "roberta") layout.position_offset = config.whole("pad_token_id", 1) + 1;
  if (config.text("position_embedding_type", "absolute") != "absolute") {
    config.fail("position_embedding_type", "is not absolute");
  }
  if (config.flag("is_decoder", false)) config.fail("is_decoder", "true is not known");
  config.whole("type_vocab_size", 2);  // the tensor says so
}

void read_caps(const ConfigKeys& config, Layout& layout) {
  struct Cap {
    const char* key;
    float& value;
  };
  for (const Cap& cap : {Cap{"attn_logit_softcapping", layout.attention_cap},
                         Cap{"final_logit_softcapping", layout.final_cap}}) {
    const double read = config.number(cap.key, 0);
    if (!(read >= 0) || read > 1e6) config.fail(cap.key, "is not a cap");
    cap.value = static_cast<float>(read);
  }
  if (config.flag("use_bidirectional_attention", false)) {
    config.fail("use_bidirectional_attention", "true is not known");
  }
}

void read_specials(const Family& family, const ConfigKeys& config, Layout& layout) {
  if (family.type == "fathom") read_own_run(config, layout);
  if (family.type == "gpt_neox" && !config.flag("use_parallel_residual", true)) {
    layout.block = Block::pre;
  }
  if (family.type == "opt") read_opt(config, layout);
  if (family.base.head == HeadKind::masked) read_encoder(family, config, layout);
  if (family.embedding_root) {
    layout.embedding_scale = static_cast<float>(std::sqrt(as_double(layout.width)));
    read_caps(config, layout);
  }
  // Biases are read where the file has them.
  for (const char* key : {"attention_bias", "mlp_bias"}) config.flag(key, false);
}

void read_sizes(const Family& family, const ConfigKeys& config, Layout& layout) {
  layout.width = config.size(family.width_key);
  layout.heads = config.size(family.heads_key);
  layout.key_heads = config.whole("num_key_value_heads", layout.heads);
  if (config.find("head_dim") == nullptr && layout.width % layout.heads != 0) {
    config.fail(family.heads_key, fmt::format("does not divide the width of {}", layout.width));
  }
  layout.head_size = config.whole("head_dim", layout.width / layout.heads);
  layout.ffn = config.whole(family.ffn_key, 4 * layout.width);
  layout.vocab = config.size("vocab_size");
  layout.context = config.whole(family.context_key, 2048);
  layout.embedding_width = layout.width;
  if (layout.key_heads == 0 || layout.heads % layout.key_heads != 0 || layout.head_size == 0 ||
      layout.ffn == 0 || layout.context == 0) {
    config.fail(family.heads_key, "does not fit the other sizes");
  }
}

}  // namespace

Layout read_layout(const Family& family, const Json& json, const std::string& origin) {
  Json whole = Json::parse(family.defaults);
  whole.update(json);
  const ConfigKeys config(whole, origin);
  Layout layout = family.base;
  read_sizes(family, config, layout);
  if (!family.epsilon_key.empty()) {
    layout.epsilon = config.number(family.epsilon_key, layout.epsilon);
    if (!(layout.epsilon >= 0) || layout.epsilon > 1) {
      config.fail(family.epsilon_key, "is not a small positive number");
    }
  }
  // Gemma's "gelu" under the old key has always meant the tanh form.
  const bool old_gemma = family.embedding_root && config.find("hidden_act") != nullptr &&
                         config.find("hidden_activation") == nullptr;
  if (!old_gemma) {
    layout.activation = activation_named(config, family.activation_key, layout.activation);
  }
  layout.tied = config.flag("tie_word_embeddings", layout.tied);
  read_specials(family, config, layout);
  read_layers(family, config, layout);
  if (family.type != "fathom") config.refuse_unread();
  return layout;
}

}  // namespace fathom::pretrained
