#include "shape/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"

namespace fathom {
namespace {

/// One family of config files: which conventions it follows and what its keys are called.
struct Family {
  std::string conventions;
  bool gated;
  bool tied_by_default;
};

const std::map<std::string, Family>& families() {
  static const std::map<std::string, Family> table{
      {"gpt2", {"gpt2", false, true}},         {"gpt_neox", {"gpt-neox", false, false}},
      {"gptj", {"gpt-j", false, false}},       {"gpt_neo", {"gpt-neo", false, true}},
      {"opt", {"opt", false, true}},           {"bloom", {"bloom", false, true}},
      {"falcon", {"falcon-40b", false, true}}, {"phi", {"phi", false, false}},
      {"mpt", {"mpt", false, true}},           {"starcoder2", {"starcoder2", false, true}},
      {"llama", {"llama", true, false}},       {"mistral", {"llama", true, false}},
      {"qwen2", {"qwen2", true, false}},       {"qwen3", {"qwen3", true, false}},
      {"gemma", {"llama", true, true}},        {"gemma2", {"gemma2", true, true}},
      {"gemma3_text", {"gemma3", true, true}}, {"phi3", {"llama", true, false}},
      {"olmo", {"olmo", true, false}},         {"olmo2", {"olmo2", true, false}},
      {"stablelm", {"stablelm", true, false}}, {"cohere", {"cohere", true, true}},
      {"smollm3", {"llama", true, true}},      {"granite", {"llama", true, false}},
      {"internlm2", {"llama", true, false}},   {"mixtral", {"llama", true, false}},
      {"qwen2_moe", {"qwen2", true, false}},   {"qwen3_moe", {"qwen3", true, false}},
      {"olmoe", {"olmo2", true, false}},       {"deepseek", {"llama", true, false}},
      {"deepseek_v2", {"llama", true, false}}, {"deepseek_v3", {"llama", true, false}},
      {"kimi_k2", {"llama", true, false}},     {"gpt_oss", {"gpt-oss", true, false}},
      {"llama4_text", {"llama", true, false}}};
  return table;
}

class ConfigReader {
 public:
  ConfigReader(const nlohmann::json& json, std::string origin)
      : json_(json), origin_(std::move(origin)) {}

  /// The first of several spellings that is present; `fallback` 0 means required.
  std::int64_t whole(const std::vector<std::string>& keys, std::int64_t fallback = 0) const {
    for (const std::string& key : keys) {
      const auto found = json_.find(key);
      if (found == json_.end() || found->is_null()) continue;
      if (!found->is_number_integer() || found->get<double>() < 1 || found->get<double>() > 1e12) {
        fail(fmt::format("'{}' must be a positive whole number", key));
      }
      return found->get<std::int64_t>();
    }
    if (fallback == 0) fail(fmt::format("'{}' is missing", keys.front()));
    return fallback;
  }

  bool boolean(const std::string& key, bool fallback) const {
    const auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) return fallback;
    if (!found->is_boolean()) fail(fmt::format("'{}' must be true or false", key));
    return found->get<bool>();
  }

  bool has(const std::vector<std::string>& keys) const {
    return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
      const auto found = json_.find(key);
      return found != json_.end() && !found->is_null();
    });
  }

  /// A count that may be zero or absent.
  std::int64_t count(const std::string& key, std::int64_t fallback = 0) const {
    const auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) return fallback;
    if (!found->is_number_integer() || found->get<double>() < 0 || found->get<double>() > 1e12) {
      fail(fmt::format("'{}' must be a whole number", key));
    }
    return found->get<std::int64_t>();
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: {}", origin_, what));
  }

 private:
  const nlohmann::json& json_;
  std::string origin_;
};

std::int64_t default_ffn(const std::string& type, std::int64_t width) {
  const bool four_times = type == "gpt2" || type == "gptj" || type == "gpt_neo" ||
                          type == "bloom" || type == "falcon" || type == "mpt";
  return four_times ? 4 * width : 0;
}

std::int64_t read_kv_heads(const ConfigReader& reader, const std::string& type,
                           std::int64_t heads) {
  if (type == "falcon" && !reader.boolean("new_decoder_architecture", false)) {
    return reader.boolean("multi_query", true) ? 1 : heads;
  }
  return reader.whole({"num_key_value_heads", "num_kv_heads"}, heads);
}

/// Multimodal models wrap the language model's keys.
const nlohmann::json& language_part(const nlohmann::json& whole) {
  for (const char* key : {"text_config", "language_config", "llm_config"}) {
    const auto found = whole.find(key);
    if (found != whole.end() && found->is_object()) return *found;
  }
  return whole;
}

void read_latent_attention(const ConfigReader& reader, Shape& shape) {
  if (!reader.has({"kv_lora_rank"})) return;
  LatentAttention& latent = shape.latent;
  latent.kv_rank = reader.whole({"kv_lora_rank"});
  latent.q_rank = reader.count("q_lora_rank");
  latent.rope_size = reader.whole({"qk_rope_head_dim"});
  latent.value_size = reader.whole({"v_head_dim"});
  shape.head_size = reader.whole({"qk_nope_head_dim"}) + latent.rope_size;
  shape.kv_heads = shape.heads;
}

/// Layers of a mixture that keep the ordinary feed-forward.
std::int64_t read_dense_layers(const ConfigReader& reader, const std::string& type,
                               std::int64_t layers) {
  if (type.starts_with("deepseek") || type == "kimi_k2") {
    return reader.count("first_k_dense_replace");
  }
  const std::int64_t step = type == "llama4_text" ? reader.count("interleave_moe_layer_step", 1)
                                                  : reader.count("decoder_sparse_step", 1);
  return step > 1 ? layers - layers / step : 0;
}

void read_experts(const ConfigReader& reader, const std::string& type, Shape& shape) {
  const std::vector<std::string> keys{"num_local_experts", "num_experts", "n_routed_experts"};
  if (!reader.has(keys) || reader.whole(keys) < 2) return;
  Experts& experts = shape.experts;
  experts.routed = reader.whole(keys);
  experts.active = reader.whole({"num_experts_per_tok"});
  experts.ffn = reader.whole({"moe_intermediate_size"}, shape.ffn);
  experts.dense_layers = read_dense_layers(reader, type, shape.layers);
  if (type.starts_with("deepseek") || type == "kimi_k2") {
    experts.shared_ffn = reader.count("n_shared_experts") * experts.ffn;
    // The correction of the scores that balances loads (arXiv 2408.15664).
    experts.router_bias = type == "deepseek_v3" || type == "kimi_k2";
  }
  if (type == "qwen2_moe") {
    experts.shared_ffn = reader.count("shared_expert_intermediate_size");
    experts.shared_gate = experts.shared_ffn > 0;
  }
  if (type == "llama4_text") {
    // "intermediate_size" is the expert's; layers without experts have "intermediate_size_mlp".
    experts.shared_ffn = experts.ffn;
    shape.ffn = reader.whole({"intermediate_size_mlp"}, shape.ffn);
  }
  if (type == "gpt_oss") experts.router_bias = experts.expert_bias = true;
}

const Family& find_family(const std::string& type, const std::string& file) {
  if (type == "bert" || type == "roberta") {
    throw ConfigError(fmt::format(
        "{}: a '{}' model is an encoder: costs and shapes here are of models that predict the next "
        "token; `fathom probe` reads it",
        file, type));
  }
  const auto found = families().find(type);
  if (found == families().end()) {
    std::vector<std::string> known;
    for (const auto& [name, family] : families()) known.push_back(name);
    throw ConfigError(fmt::format("{}: model_type '{}' is not known.{} Known: {}", file, type,
                                  did_you_mean(type, known), join(known, ", ")));
  }
  return found->second;
}

}  // namespace

HfModel read_hf_config(const std::filesystem::path& path) {
  const auto file = std::filesystem::is_directory(path) ? path / "config.json" : path;
  const nlohmann::json whole = read_json_file(file);
  if (!whole.is_object()) throw DataError(fmt::format("{}: not a JSON object", file.string()));
  const nlohmann::json& json = language_part(whole);
  const ConfigReader reader(json, file.string());
  if (!json.contains("model_type") || !json["model_type"].is_string()) {
    reader.fail("'model_type' is missing; is this a Hugging Face config?");
  }
  const std::string type = json["model_type"].get<std::string>();
  const Family& family = find_family(type, file.string());
  HfModel model{type, {}};
  Shape& shape = model.shape;
  shape.layers = reader.whole({"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
  shape.width = reader.whole({"hidden_size", "n_embd", "d_model"});
  shape.heads = reader.whole({"num_attention_heads", "n_head", "n_heads", "num_heads"});
  shape.kv_heads = read_kv_heads(reader, type, shape.heads);
  const bool own_head_size = reader.has({"head_dim", "qk_nope_head_dim"});
  if (!own_head_size && shape.width % shape.heads != 0) {
    reader.fail(
        fmt::format("hidden size {} is not divisible by {} heads", shape.width, shape.heads));
  }
  shape.head_size =
      reader.whole({"head_dim"}, std::max<std::int64_t>(1, shape.width / shape.heads));
  shape.ffn = reader.whole({"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"},
                           default_ffn(type, shape.width));
  shape.ffn_matrices = family.gated ? 3 : 2;
  shape.vocab = reader.whole({"vocab_size"});
  const std::vector<std::string> context_keys{"max_position_embeddings", "n_positions", "n_ctx",
                                              "max_seq_len"};
  shape.context_known = reader.has(context_keys);
  shape.context = reader.whole(context_keys, kDefaultContext);
  shape.tied = reader.boolean("tie_word_embeddings", family.tied_by_default);
  shape.conventions = find_conventions(family.conventions);
  read_latent_attention(reader, shape);
  read_experts(reader, type, shape);
  if (reader.boolean("attention_bias", false)) {
    shape.conventions.qkv_bias = shape.conventions.out_bias = true;
  }
  if (reader.boolean("mlp_bias", false)) shape.conventions.ffn_bias = true;
  if (type == "falcon" && !reader.boolean("new_decoder_architecture", false)) {
    shape.conventions = find_conventions("falcon-7b");
  }
  if (type == "opt" && (reader.whole({"word_embed_proj_dim"}, shape.width) != shape.width ||
                        !reader.boolean("do_layer_norm_before", true))) {
    reader.fail("the form of OPT-350m (post-norm, a projected embedding) cannot be counted");
  }
  validate(shape);
  return model;
}

}  // namespace fathom
