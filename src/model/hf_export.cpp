#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/safetensors.h"
#include "core/text.h"
#include "model/hf_layout.h"
#include "model/hf_names.h"
#include "model/parametrisation.h"

namespace fathom::model {
namespace {

using Json = nlohmann::ordered_json;

/// Multiplies rows [first, last) of a matrix.
void scale_rows(std::vector<float>& values, std::int64_t cols, std::int64_t first,
                std::int64_t last, double factor) {
  for (std::int64_t i = first * cols; i < last * cols; ++i) {
    values[i] = static_cast<float>(values[i] * factor);
  }
}

/// Folds the forward multipliers into the weights that can absorb them.
void fold_multipliers(const ModelSpec& spec, const HfParameter& parameter,
                      std::vector<float>& values) {
  const std::string& name = parameter.name;
  const std::int64_t query = spec.heads * spec.resolved_head_size();
  const bool qkv = name.find(".qkv.") != std::string::npos;
  const bool to_stream =
      name.find(".out.") != std::string::npos || name.find(".down.") != std::string::npos;
  if (qkv) {
    // The layouts divide by sqrt(K); whatever differs goes into the queries.
    const double factor = attention_scale(spec) * std::sqrt(as_double(spec.resolved_head_size()));
    if (parameter.vector) {
      scale_rows(values, 1, 0, query, factor);
    } else {
      scale_rows(values, parameter.cols, 0, query, factor);
    }
  } else if (to_stream) {
    scale_rows(values, parameter.cols, 0, parameter.rows, branch_multiplier(spec));
  } else if (name.starts_with("final_norm.")) {
    scale_rows(values, parameter.cols, 0, parameter.rows, head_multiplier(spec));
  }
}

/// Rows of a piece in the foreign order.
std::vector<float> piece_values(const HfParameter& parameter, const HfPiece& piece,
                                const std::vector<float>& values) {
  const auto cols = as_size(parameter.cols);
  const auto rows = as_size(piece.rows);
  const float* from = values.data() + as_size(piece.first_row) * cols;
  std::vector<float> out(from, from + rows * cols);
  if (piece.transposed) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < cols; ++c) out[c * rows + r] = from[r * cols + c];
    }
  }
  return out;
}

std::vector<std::uint64_t> piece_shape(const HfParameter& parameter, const HfPiece& piece) {
  const auto rows = as_size(piece.rows);
  const auto cols = as_size(parameter.cols);
  if (parameter.vector) return {cols};
  return piece.transposed ? std::vector<std::uint64_t>{cols, rows}
                          : std::vector<std::uint64_t>{rows, cols};
}

Json gpt2_config(const ModelSpec& spec) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"n_layer", spec.layers},
          {"n_embd", spec.width},
          {"n_head", spec.heads},
          {"n_inner", spec.resolved_ffn()},
          {"n_positions", spec.context},
          {"vocab_size", spec.vocab},
          {"layer_norm_epsilon", spec.norm_epsilon},
          {"activation_function", spec.activation == FeedForward::gelu_tanh ? "gelu_new" : "gelu"},
          {"resid_pdrop", spec.dropout},
          {"embd_pdrop", spec.dropout},
          {"attn_pdrop", 0.0},
          {"tie_word_embeddings", spec.tied},
          {"bos_token_id", nullptr},
          {"eos_token_id", nullptr},
          {"torch_dtype", "float32"}};
}

Json llama_config(const ModelSpec& spec) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"num_hidden_layers", spec.layers},
          {"hidden_size", spec.width},
          {"num_attention_heads", spec.heads},
          {"num_key_value_heads", spec.resolved_key_heads()},
          {"head_dim", spec.resolved_head_size()},
          {"intermediate_size", spec.resolved_ffn()},
          {"max_position_embeddings", spec.context},
          {"vocab_size", spec.vocab},
          {"rms_norm_eps", spec.norm_epsilon},
          {"rope_theta", spec.rotary_base},
          {"hidden_act", "silu"},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"tie_word_embeddings", spec.tied},
          {"bos_token_id", nullptr},
          {"eos_token_id", nullptr},
          {"torch_dtype", "float32"}};
}

void require(bool holds, HfFormat format, const std::string& what) {
  if (holds) return;
  throw ConfigError(fmt::format("{} cannot express {}", name_of(format), what));
}

/// Attention of both layouts is plain: softmax over the keys of all tokens before.
void require_plain_attention(const ModelSpec& spec, HfFormat format) {
  const auto needs = [&](bool holds, const std::string& what) { require(holds, format, what); };
  needs(spec.keys == KeySource::tokens, fmt::format("keys = \"{}\"", name_of(spec.keys)));
  needs(spec.attention == engine::AttentionKind::softmax,
        fmt::format("attention = \"{}\"", name_of(spec.attention)));
  needs(spec.mask == engine::MaskKind::causal, fmt::format("mask = \"{}\"", name_of(spec.mask)));
  needs(!spec.has_pattern(), "a pattern of keys (stride, global_tokens, random_blocks, own_block)");
  needs(spec.window == 0, fmt::format("window = {}", spec.window));
  needs(!spec.attention_norm, "attention_norm = true");
  needs(spec.layer_heads.empty(), "layer_heads, layers with different numbers of heads");
}

}  // namespace

void check_expressible(const ModelSpec& spec, HfFormat format) {
  const auto needs = [&](bool holds, const char* what) { require(holds, format, what); };
  require_plain_attention(spec, format);
  needs(spec.norm == NormPlace::pre, "another norm place than pre");
  needs(spec.residual, "a model without residuals");
  std::string plain;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) plain += "sf";
  needs(spec.sublayers() == plain, "another order of sublayers");
  needs(spec.slice == 0, "slice, layers that have a part of the stream");
  needs(spec.layer_ffn.empty(), "layer_ffn, feed-forwards of different widths");
  needs(spec.embedding_rank == 0, "a low-rank embedding");
  if (format == HfFormat::gpt2) {
    needs(spec.norm_kind == engine::NormKind::layer, "RMSNorm");
    needs(spec.biases, "linear maps without biases");
    needs(spec.positions == Positions::learned, "positions that are not learned");
    needs(spec.activation == FeedForward::gelu || spec.activation == FeedForward::gelu_tanh,
          "a feed-forward other than GELU");
    needs(spec.resolved_key_heads() == spec.heads, "grouped-query heads");
    needs(spec.heads * spec.resolved_head_size() == spec.width,
          "a head size other than width / heads");
  } else {
    needs(spec.norm_kind == engine::NormKind::rms, "LayerNorm");
    needs(!spec.biases, "biases");
    needs(spec.positions == Positions::rotary, "positions that are not rotary");
    needs(spec.activation == FeedForward::swiglu, "a feed-forward other than SwiGLU");
  }
}

void export_hf(const ModelSpec& spec, const ParameterValues& parameters, HfFormat format,
               const std::filesystem::path& folder) {
  check_expressible(spec, format);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder)) {
    throw DataError(fmt::format("{}: cannot create this folder", folder.string()));
  }
  const std::vector<HfParameter> layout = hf_parameters(spec, format);
  std::vector<TensorSpec> tensors;
  for (const HfParameter& parameter : layout) {
    for (const HfPiece& piece : parameter.pieces) {
      tensors.push_back({piece.name, TensorType::f32, piece_shape(parameter, piece)});
    }
  }
  SafetensorsWriter writer(folder / kModelTensors, tensors, {{"format", "pt"}});
  for (const HfParameter& parameter : layout) {
    const auto found = parameters.find(parameter.name);
    if (found == parameters.end() || std::ssize(found->second) != parameter.rows * parameter.cols) {
      throw InternalError(
          fmt::format("export: parameter {} is missing or has another size", parameter.name));
    }
    std::vector<float> values = found->second;
    fold_multipliers(spec, parameter, values);
    for (const HfPiece& piece : parameter.pieces) {
      const std::vector<float> out = piece_values(parameter, piece, values);
      writer.write(piece.name, std::as_bytes(std::span(out)));
    }
  }
  writer.commit();
  const Json config = format == HfFormat::gpt2 ? gpt2_config(spec) : llama_config(spec);
  write_file_atomically(folder / "config.json", config.dump(2) + "\n");
}

}  // namespace fathom::model
