// A GGUF file as a Hugging Face checkpoint: keys become a config, tensors get their names back.
#include <fmt/format.h>

#include <array>

#include "core/error.h"
#include "core/json_reader.h"
#include "core/json_text.h"
#include "core/mapped_file.h"
#include "pretrained/checkpoint.h"
#include "pretrained/gguf_file.h"
#include "tokenizers/hf_tokenizer.h"

namespace fathom::pretrained {
namespace {

using Json = nlohmann::json;

struct Name {
  const char* gguf;
  const char* hf;
};
constexpr std::array kModelNames{Name{"token_embd", "model.embed_tokens"},
                                 Name{"output_norm", "model.norm"}, Name{"output", "lm_head"}};
constexpr std::array kLayerNames{
    Name{"attn_norm", "input_layernorm"},    Name{"attn_q", "self_attn.q_proj"},
    Name{"attn_k", "self_attn.k_proj"},      Name{"attn_v", "self_attn.v_proj"},
    Name{"attn_qkv", "self_attn.qkv_proj"},  Name{"attn_output", "self_attn.o_proj"},
    Name{"attn_q_norm", "self_attn.q_norm"}, Name{"attn_k_norm", "self_attn.k_norm"},
    Name{"ffn_gate", "mlp.gate_proj"},       Name{"ffn_up", "mlp.up_proj"},
    Name{"ffn_down", "mlp.down_proj"},
};
/// What `ffn_norm` and the norms after branches are called depends on the family.
constexpr std::array kPlainNorms{Name{"ffn_norm", "post_attention_layernorm"}};
constexpr std::array kSandwichNorms{Name{"post_attention_norm", "post_attention_layernorm"},
                                    Name{"ffn_norm", "pre_feedforward_layernorm"},
                                    Name{"post_ffw_norm", "post_feedforward_layernorm"}};

/// GGUF's name of an architecture and Hugging Face's type.
struct Architecture {
  const char* gguf;
  const char* type;
  bool paired;    // rows of q and k are interleaved rotary pairs
  bool sandwich;  // norms before and after each branch
};
constexpr std::array kArchitectures{
    Architecture{"llama", "llama", true, false},
    Architecture{"qwen2", "qwen2", false, false},
    Architecture{"qwen3", "qwen3", false, false},
    Architecture{"gemma2", "gemma2", false, true},
    Architecture{"gemma3", "gemma3_text", false, true},
};

const Architecture& architecture_of(const GgufFile& file) {
  const std::string name = file.keys().value("general.architecture", "");
  std::string known;
  for (const Architecture& each : kArchitectures) {
    if (name == each.gguf) return each;
    known += (known.empty() ? "" : ", ") + std::string(each.gguf);
  }
  throw ConfigError(
      fmt::format("{}: GGUF architecture '{}' is not known; {}", file.origin(), name, known));
}

template <std::size_t N>
const char* translate(const std::array<Name, N>& names, const std::string& name) {
  for (const Name& each : names) {
    if (name == each.gguf) return each.hf;
  }
  return nullptr;
}

/// "blk.3.attn_q.weight" to "model.layers.3.self_attn.q_proj.weight"; unknown names stay, so that
/// the check for unread tensors reports them.
std::string hf_name(const std::string& gguf, bool sandwich) {
  const std::size_t dot = gguf.rfind('.');
  if (dot == gguf.npos) return gguf;
  const std::string ending = gguf.substr(dot);
  std::string stem = gguf.substr(0, dot);
  if (!stem.starts_with("blk.")) {
    const char* found = translate(kModelNames, stem);
    return found == nullptr ? gguf : found + ending;
  }
  const std::size_t second = stem.find('.', 4);
  if (second == stem.npos) return gguf;
  const std::string layer = stem.substr(4, second - 4), part = stem.substr(second + 1);
  const char* found = translate(kLayerNames, part);
  if (found == nullptr) {
    found = sandwich ? translate(kSandwichNorms, part) : translate(kPlainNorms, part);
  }
  return found == nullptr ? gguf : fmt::format("model.layers.{}.{}{}", layer, found, ending);
}

class GgufSource : public TensorSource {
 public:
  GgufSource(std::shared_ptr<const GgufFile> file, const Architecture& architecture,
             std::uint64_t heads, std::uint64_t key_heads)
      : file_(std::move(file)), architecture_(architecture), heads_(heads), key_heads_(key_heads) {
    for (const auto& [name, tensor] : file_->tensors()) {
      if (name == "rope_freqs.weight") continue;  // folded into the config's rope_scaling
      tensors_.emplace(hf_name(name, architecture.sandwich), &tensor);
    }
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> list;
    for (const auto& [name, tensor] : tensors_) list.push_back(name);
    return list;
  }
  const TensorShape* find(const std::string& name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second->shape;
  }
  void read(const std::string& name, std::span<float> out) const override {
    const GgufTensor& tensor = *tensors_.at(name);
    decode_ggml(*tensor.type, tensor.bytes, out);
    release_pages(tensor.bytes);
    if (!architecture_.paired) return;
    const bool query = name.find("self_attn.q_proj") != name.npos;
    const bool key = name.find("self_attn.k_proj") != name.npos;
    if (query || key) pairs_to_halves(out, tensor.shape.front(), query ? heads_ : key_heads_);
  }

 private:
  std::shared_ptr<const GgufFile> file_;
  const Architecture& architecture_;
  std::uint64_t heads_, key_heads_;
  std::map<std::string, const GgufTensor*> tensors_;
};

/// Keys of the file that have a counterpart in config.json.
constexpr std::array kKeys{
    Name{"embedding_length", "hidden_size"},
    Name{"block_count", "num_hidden_layers"},
    Name{"feed_forward_length", "intermediate_size"},
    Name{"attention.head_count", "num_attention_heads"},
    Name{"attention.head_count_kv", "num_key_value_heads"},
    Name{"attention.key_length", "head_dim"},
    Name{"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    Name{"attention.sliding_window", "sliding_window"},
    Name{"attn_logit_softcapping", "attn_logit_softcapping"},
    Name{"final_logit_softcapping", "final_logit_softcapping"},
    Name{"context_length", "max_position_embeddings"},
    Name{"rope.freq_base", "rope_theta"},
};

Json config_of(const GgufFile& file, const Architecture& architecture) {
  const Json& keys = file.keys();
  Json config{{"model_type", architecture.type}};
  const std::string prefix = std::string(architecture.gguf) + ".";
  for (const Name& each : kKeys) {
    const auto found = keys.find(prefix + each.gguf);
    if (found != keys.end()) config[each.hf] = *found;
  }
  const auto tokens = file.tensors().find("token_embd.weight");
  if (tokens == file.tensors().end()) {
    throw DataError(fmt::format("{}: lacks token_embd.weight", file.origin()));
  }
  config["vocab_size"] = tokens->second.shape.front();
  if (architecture.sandwich) {
    // The file does not say it: the largest Gemma 2 and 3 scale scores by D / H, not by K.
    const auto whole = [&](const char* key) { return config.value(key, std::uint64_t{0}); };
    const std::uint64_t layers = whole("num_hidden_layers"), heads = whole("num_attention_heads");
    const bool largest = layers == (architecture.type == std::string("gemma2") ? 46 : 62);
    const std::uint64_t own = whole("head_dim");
    const std::uint64_t root = largest && heads > 0 ? whole("hidden_size") / heads : own;
    if (root > 0) config["query_pre_attn_scalar"] = root;
  }
  config["tie_word_embeddings"] = !file.tensors().contains("output.weight");
  if (keys.value(prefix + "rope.scaling.type", "none") == "linear") {
    config["rope_scaling"] = {{"rope_type", "linear"},
                              {"factor", keys.value(prefix + "rope.scaling.factor", 1.0)}};
  } else if (file.tensors().contains("rope_freqs.weight")) {
    throw ConfigError(fmt::format(
        "{}: rotary frequencies with factors of their own (rope_freqs.weight) are not known",
        file.origin()));
  }
  return config;
}

}  // namespace

Checkpoint open_gguf(const std::filesystem::path& path) try {
  const auto file = std::make_shared<const GgufFile>(path);
  const Architecture& architecture = architecture_of(*file);
  Checkpoint checkpoint;
  checkpoint.origin = path.string();
  *checkpoint.config = config_of(*file, architecture);
  checkpoint.gains_are_whole = architecture.sandwich;
  const Json& config = *checkpoint.config;
  const auto heads = config.value("num_attention_heads", std::uint64_t{1});
  checkpoint.tensors = std::make_unique<GgufSource>(file, architecture, heads,
                                                    config.value("num_key_value_heads", heads));
  try {
    checkpoint.tokenizer = tokenizers::make_gguf_tokenizer(file->keys(), checkpoint.origin);
  } catch (const Error& error) {
    checkpoint.tokenizer_note = error.what();
  }
  return checkpoint;
} catch (const Json::exception& error) {
  throw DataError(
      fmt::format("{}: a key has the wrong type ({})", path.string(), json_problem(error)));
}

}  // namespace fathom::pretrained
