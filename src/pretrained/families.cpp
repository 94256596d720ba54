#include "pretrained/families.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"

namespace fathom::pretrained {
namespace {

TensorNames llama_names() {
  TensorNames n;
  n.prefixes = {"model.", "language_model.model.", "model.language_model.", ""};
  n.layer = "layers.{}.";
  n.tokens = "embed_tokens";
  n.final_norm = "norm";
  n.q = "self_attn.q_proj";
  n.k = "self_attn.k_proj";
  n.v = "self_attn.v_proj";
  n.out = "self_attn.o_proj";
  n.gate = "mlp.gate_proj";
  n.up = "mlp.up_proj";
  n.down = "mlp.down_proj";
  n.attention_in = "input_layernorm";
  n.ffn_in = "post_attention_layernorm";
  n.head = "lm_head";
  return n;
}

Family llama_like(std::string_view type) {
  Family f;
  f.type = type;
  f.base.family = type;
  f.names = llama_names();
  return f;
}

Family mistral() {
  Family f = llama_like("mistral");
  f.windows = WindowRule::all;
  f.defaults = R"({"num_key_value_heads": 8, "sliding_window": 4096})";
  return f;
}

Family smollm3() {
  Family f = llama_like("smollm3");
  f.base.tied = true;
  f.defaults = R"({"num_key_value_heads": 4, "rope_theta": 2000000.0})";
  return f;
}

Family qwen2() {
  Family f = llama_like("qwen2");
  f.windows = WindowRule::from_layer;
  f.defaults = R"({"num_key_value_heads": 32, "sliding_window": 4096})";
  return f;
}

Family qwen3() {
  Family f = llama_like("qwen3");
  f.defaults = R"({"num_key_value_heads": 32, "head_dim": 128, "sliding_window": 4096})";
  f.windows = WindowRule::from_layer;
  f.base.qk_norm = QkNorm::per_head;
  f.names.q_norm = "self_attn.q_norm";
  f.names.k_norm = "self_attn.k_norm";
  return f;
}

Family gemma(std::string_view type) {
  Family f = llama_like(type);
  f.base.block = Block::sandwich;
  f.base.gain_plus_one = true;
  f.base.activation = Activation::gelu_tanh;
  f.base.tied = true;
  f.embedding_root = true;
  f.activation_key = "hidden_activation";
  f.names.attention_out = "post_attention_layernorm";
  f.names.ffn_in = "pre_feedforward_layernorm";
  f.names.ffn_out = "post_feedforward_layernorm";
  f.windows = WindowRule::even;
  return f;
}

Family gemma2() {
  Family f = gemma("gemma2");
  f.defaults = R"({"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
                   "query_pre_attn_scalar": 256, "sliding_window": 4096, "vocab_size": 256000,
                   "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
                   "max_position_embeddings": 8192})";
  return f;
}

Family gemma3() {
  Family f = gemma("gemma3_text");
  f.defaults = R"({"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
                   "query_pre_attn_scalar": 256, "sliding_window": 4096, "vocab_size": 262208,
                   "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
                   "max_position_embeddings": 131072})";
  f.windows = WindowRule::pattern;
  f.base.qk_norm = QkNorm::per_head;
  f.names.q_norm = "self_attn.q_norm";
  f.names.k_norm = "self_attn.k_norm";
  return f;
}

Family phi3() {
  Family f = llama_like("phi3");
  f.base.epsilon = 1e-5;
  f.windows = WindowRule::all;
  f.qkv = QkvForm::stacked;
  f.names.qkv = "self_attn.qkv_proj";
  f.names.gate_up = "mlp.gate_up_proj";
  return f;
}

Family olmo2() {
  Family f = llama_like("olmo2");
  f.base.epsilon = 1e-5;
  f.base.block = Block::branch;
  f.base.qk_norm = QkNorm::whole;
  f.names.q_norm = "self_attn.q_norm";
  f.names.k_norm = "self_attn.k_norm";
  f.names.attention_in = "";
  f.names.ffn_in = "";
  f.names.attention_out = "post_attention_layernorm";
  f.names.ffn_out = "post_feedforward_layernorm";
  return f;
}

/// LayerNorm with biases, a feed-forward without a gate.
Family classic(std::string_view type) {
  Family f;
  f.type = type;
  f.base.family = type;
  f.base.norm = NormKind::layer;
  f.base.epsilon = 1e-5;
  f.base.gated = false;
  return f;
}

Family gpt2() {
  Family f = classic("gpt2");
  f.base.activation = Activation::gelu_tanh;
  f.base.learned_positions = true;
  f.base.tied = true;
  f.qkv = QkvForm::stacked;
  f.transposed = true;
  f.width_key = "n_embd";
  f.layers_key = "n_layer";
  f.heads_key = "n_head";
  f.ffn_key = "n_inner";
  f.context_key = "n_positions";
  f.epsilon_key = "layer_norm_epsilon";
  f.activation_key = "activation_function";
  TensorNames& n = f.names;
  n.prefixes = {"transformer.", ""};
  n.layer = "h.{}.";
  n.tokens = "wte";
  n.positions = "wpe";
  n.final_norm = "ln_f";
  n.qkv = "attn.c_attn";
  n.out = "attn.c_proj";
  n.up = "mlp.c_fc";
  n.down = "mlp.c_proj";
  n.attention_in = "ln_1";
  n.ffn_in = "ln_2";
  n.head = "lm_head";
  return f;
}

Family gpt_neox() {
  Family f = classic("gpt_neox");
  f.base.activation = Activation::gelu;
  f.base.block = Block::parallel;
  f.qkv = QkvForm::per_head;
  f.epsilon_key = "layer_norm_eps";
  TensorNames& n = f.names;
  n.prefixes = {"gpt_neox.", ""};
  n.layer = "layers.{}.";
  n.tokens = "embed_in";
  n.final_norm = "final_layer_norm";
  n.qkv = "attention.query_key_value";
  n.out = "attention.dense";
  n.up = "mlp.dense_h_to_4h";
  n.down = "mlp.dense_4h_to_h";
  n.attention_in = "input_layernorm";
  n.ffn_in = "post_attention_layernorm";
  n.head = "embed_out";
  return f;
}

Family opt() {
  Family f = classic("opt");
  f.base.activation = Activation::relu;
  f.base.learned_positions = true;
  f.base.position_offset = 2;
  f.base.tied = true;
  f.ffn_key = "ffn_dim";
  f.epsilon_key = "";
  f.activation_key = "activation_function";
  TensorNames& n = f.names;
  n.prefixes = {"model.decoder.", "decoder."};
  n.layer = "layers.{}.";
  n.tokens = "embed_tokens";
  n.positions = "embed_positions";
  n.project_in = "project_in";
  n.project_out = "project_out";
  n.final_norm = "final_layer_norm";
  n.q = "self_attn.q_proj";
  n.k = "self_attn.k_proj";
  n.v = "self_attn.v_proj";
  n.out = "self_attn.out_proj";
  n.up = "fc1";
  n.down = "fc2";
  n.attention_in = "self_attn_layer_norm";
  n.ffn_in = "final_layer_norm";  // the norm before fc1, whatever its name says
  n.head = "lm_head";
  return f;
}

Family bert() {
  Family f = classic("bert");
  f.base.epsilon = 1e-12;
  f.base.activation = Activation::gelu;
  f.base.block = Block::post;
  f.base.causal = false;
  f.base.learned_positions = true;
  f.base.token_types = true;
  f.base.embedding_norm = true;
  f.base.final_norm = false;
  f.base.tied = true;
  f.base.head = HeadKind::masked;
  f.epsilon_key = "layer_norm_eps";
  TensorNames& n = f.names;
  n.prefixes = {"bert.", ""};
  n.layer = "encoder.layer.{}.";
  n.tokens = "embeddings.word_embeddings";
  n.positions = "embeddings.position_embeddings";
  n.token_types = "embeddings.token_type_embeddings";
  n.embedding_norm = "embeddings.LayerNorm";
  n.q = "attention.self.query";
  n.k = "attention.self.key";
  n.v = "attention.self.value";
  n.out = "attention.output.dense";
  n.up = "intermediate.dense";
  n.down = "output.dense";
  n.attention_out = "attention.output.LayerNorm";
  n.ffn_out = "output.LayerNorm";
  n.head = "cls.predictions.decoder";
  n.masked_dense = "cls.predictions.transform.dense";
  n.masked_norm = "cls.predictions.transform.LayerNorm";
  n.masked_bias = "cls.predictions.bias";
  return f;
}

Family roberta() {
  Family f = bert();
  f.type = "roberta";
  f.base.family = "roberta";
  f.base.position_offset = 2;  // pad_token_id + 1
  f.names.prefixes = {"roberta.", ""};
  f.names.head = "lm_head.decoder";
  f.names.masked_dense = "lm_head.dense";
  f.names.masked_norm = "lm_head.layer_norm";
  f.names.masked_bias = "lm_head.bias";
  return f;
}

/// Fathom's own runs (probe/own_run.h): its fused parameters under plain names.
Family fathom_run() {
  Family f = classic("fathom");
  f.qkv = QkvForm::stacked;
  f.windows = WindowRule::all;
  f.epsilon_key = "norm_epsilon";
  TensorNames& n = f.names;
  n.prefixes = {""};
  n.layer = "layers.{}.";
  n.tokens = "tokens";
  n.positions = "positions";
  n.final_norm = "final_norm";
  n.qkv = "attention.qkv";
  n.out = "attention.out";
  n.up = "ffn.up";
  n.gate_up = "ffn.gate_up";
  n.down = "ffn.down";
  n.attention_in = "attention.norm";
  n.ffn_in = "ffn.norm";
  n.head = "head";
  return f;
}

const std::vector<Family>& families() {
  static const std::vector<Family> all{gpt2(),      llama_like("llama"),
                                       mistral(),   smollm3(),
                                       qwen2(),     qwen3(),
                                       gpt_neox(),  opt(),
                                       gemma2(),    gemma3(),
                                       phi3(),      olmo2(),
                                       bert(),      roberta(),
                                       fathom_run()};
  return all;
}

}  // namespace

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& each : families()) {
    if (each.type != "fathom") names.emplace_back(each.type);
  }
  return names;
}

const Family& find_family(const std::string& model_type, const std::string& origin) {
  for (const Family& each : families()) {
    if (each.type == model_type) return each;
  }
  throw ConfigError(fmt::format("{}: model_type '{}' is not known; {}", origin,
                                printable(model_type), fmt::join(family_names(), ", ")));
}

}  // namespace fathom::pretrained
