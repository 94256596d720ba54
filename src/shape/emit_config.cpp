#include "shape/emit_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"

namespace fathom {
namespace {

using Json = nlohmann::ordered_json;

void require(bool holds, const std::string& format, const std::string& what) {
  if (!holds)
    throw ConfigError(fmt::format("--emit {}: the format cannot express {}", format, what));
}

void require_gpt2(const Shape& shape, const std::string& format) {
  require(!shape.gated(), format, "a gated feed-forward; use --style gpt2");
  require(shape.kv_heads == shape.heads, format, "grouped-query heads");
  require(shape.attention_width() == shape.width, format, "a head size other than width / heads");
}

std::string hf_gpt2(const Shape& shape) {
  require_gpt2(shape, "hf-gpt2");
  const Json config{{"architectures", {"GPT2LMHeadModel"}},
                    {"model_type", "gpt2"},
                    {"n_layer", shape.layers},
                    {"n_embd", shape.width},
                    {"n_head", shape.heads},
                    {"n_inner", shape.ffn},
                    {"n_positions", shape.context},
                    {"vocab_size", shape.vocab},
                    {"activation_function", "gelu_new"},
                    {"tie_word_embeddings", shape.tied},
                    {"bos_token_id", nullptr},
                    {"eos_token_id", nullptr}};
  return config.dump(2) + "\n";
}

std::string hf_llama(const Shape& shape) {
  require(shape.gated(), "hf-llama", "a plain feed-forward; use --style llama");
  const Json config{{"architectures", {"LlamaForCausalLM"}},
                    {"model_type", "llama"},
                    {"num_hidden_layers", shape.layers},
                    {"hidden_size", shape.width},
                    {"num_attention_heads", shape.heads},
                    {"num_key_value_heads", shape.kv_heads},
                    {"head_dim", shape.head_size},
                    {"intermediate_size", shape.ffn},
                    {"max_position_embeddings", shape.context},
                    {"vocab_size", shape.vocab},
                    {"hidden_act", "silu"},
                    {"rms_norm_eps", 1e-5},
                    {"attention_bias", false},
                    {"mlp_bias", false},
                    {"tie_word_embeddings", shape.tied},
                    {"bos_token_id", nullptr},
                    {"eos_token_id", nullptr}};
  return config.dump(2) + "\n";
}

std::string megatron(const Shape& shape, const ParallelSizes& parallel) {
  std::vector<std::string> lines{fmt::format("--num-layers {}", shape.layers),
                                 fmt::format("--hidden-size {}", shape.width),
                                 fmt::format("--num-attention-heads {}", shape.heads),
                                 fmt::format("--kv-channels {}", shape.head_size),
                                 fmt::format("--ffn-hidden-size {}", shape.ffn),
                                 fmt::format("--seq-length {}", shape.context),
                                 fmt::format("--max-position-embeddings {}", shape.context),
                                 fmt::format("--padded-vocab-size {}", shape.vocab)};
  if (shape.kv_heads != shape.heads) {
    lines.push_back(fmt::format("--group-query-attention --num-query-groups {}", shape.kv_heads));
  }
  if (shape.gated()) {
    lines.emplace_back("--swiglu --disable-bias-linear --normalization RMSNorm");
    lines.emplace_back("--position-embedding-type rope");
  } else {
    lines.emplace_back("--position-embedding-type learned_absolute");
  }
  if (!shape.tied) lines.emplace_back("--untie-embeddings-and-output-weights");
  lines.push_back(fmt::format("--tensor-model-parallel-size {}", parallel.tensor));
  lines.push_back(fmt::format("--pipeline-model-parallel-size {}", parallel.pipeline));
  if (parallel.tensor > 1) lines.emplace_back("--sequence-parallel");
  return join(lines, "\n") + "\n";
}

std::string nanogpt(const Shape& shape) {
  require_gpt2(shape, "nanogpt");
  require(shape.ffn == 4 * shape.width, "nanogpt", "a feed-forward other than 4 x width");
  require(shape.tied, "nanogpt", "an untied head");
  return fmt::format(
      "# python train.py this_file.py ; vocabulary {} comes from the data set's meta.pkl\n"
      "n_layer = {}\nn_embd = {}\nn_head = {}\nblock_size = {}\nbias = True\ndropout = 0.0\n",
      shape.vocab, shape.layers, shape.width, shape.heads, shape.context);
}

}  // namespace

bool wants_gated(ConfigFormat format) {
  return format == ConfigFormat::hf_llama || format == ConfigFormat::megatron;
}

std::string emit_config(const Shape& shape, ConfigFormat format, const ParallelSizes& parallel) {
  switch (format) {
    case ConfigFormat::hf_gpt2:
      return hf_gpt2(shape);
    case ConfigFormat::hf_llama:
      return hf_llama(shape);
    case ConfigFormat::megatron:
      return megatron(shape, parallel);
    case ConfigFormat::nanogpt:
      return nanogpt(shape);
  }
  throw InternalError("unknown config format");
}

}  // namespace fathom
