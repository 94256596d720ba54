#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/counts.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/safetensors.h"
#include "model/hf_layout.h"
#include "model/hf_names.h"
#include "shape/hf_config.h"

namespace fathom::model {
namespace {

double number_at(const nlohmann::json& config, const char* key, double fallback) {
  const auto found = config.find(key);
  return found != config.end() && found->is_number() ? found->get<double>() : fallback;
}

std::string text_at(const nlohmann::json& config, const char* key, const std::string& fallback) {
  const auto found = config.find(key);
  return found != config.end() && found->is_string() ? found->get<std::string>() : fallback;
}

FeedForward gelu_form(const std::string& name, const std::string& origin) {
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") {
    return FeedForward::gelu_tanh;
  }
  if (name == "gelu") return FeedForward::gelu;
  throw ConfigError(
      fmt::format("{}: activation_function '{}' is not known; gelu_new or gelu", origin, name));
}

/// Newer configs nest the base in "rope_parameters"; other types than the plain one are refused.
double rotary_base(const nlohmann::json& config, const std::string& origin) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const auto found = config.find(key);
    if (found == config.end() || !found->is_object()) continue;
    const std::string type = text_at(*found, "rope_type", text_at(*found, "type", "default"));
    if (type != "default") {
      throw ConfigError(
          fmt::format("{}: rotary positions of type '{}' are not known", origin, type));
    }
    if (found->contains("rope_theta")) return number_at(*found, "rope_theta", 10000);
  }
  return number_at(config, "rope_theta", 10000);
}

ModelSpec spec_of(const HfModel& hf, const nlohmann::json& config, const std::string& origin) {
  const Shape& shape = hf.shape;
  ModelSpec spec;
  spec.layers = shape.layers;
  spec.width = shape.width;
  spec.heads = shape.heads;
  spec.key_heads = shape.kv_heads;
  spec.head_size = shape.head_size;
  spec.ffn = shape.ffn;
  spec.vocab = shape.vocab;
  spec.context = shape.context;
  spec.tied = shape.tied;
  if (hf.model_type == "gpt2") {
    spec.activation = gelu_form(text_at(config, "activation_function", "gelu_new"), origin);
    spec.norm_epsilon = number_at(config, "layer_norm_epsilon", 1e-5);
    for (const char* key : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"}) {
      const auto found = config.find(key);
      if (found != config.end() && found->is_boolean() && found->get<bool>()) {
        throw ConfigError(fmt::format("{}: '{}' is not known", origin, key));
      }
    }
  } else {
    if (shape.conventions.qkv_bias || shape.conventions.ffn_bias) {
      throw ConfigError(fmt::format("{}: biases have no place in a LLaMA model here", origin));
    }
    spec.biases = false;
    spec.norm_kind = engine::NormKind::rms;
    spec.norm_epsilon = number_at(config, "rms_norm_eps", 1e-6);
    spec.activation = FeedForward::swiglu;
    spec.positions = Positions::rotary;
    spec.rotary_base = rotary_base(config, origin);
    const auto window = config.find("sliding_window");
    if (window != config.end() && window->is_number_integer()) spec.window = *window;
  }
  validate(spec);
  return spec;
}

/// GPT-2 checkpoints may lack the "transformer." in front of every name.
const TensorView& find_tensor(const SafetensorsModel& file, const std::string& name) {
  constexpr std::string_view kPrefix = "transformer.";
  if (file.find(name) == nullptr && name.starts_with(kPrefix)) {
    if (const TensorView* bare = file.find(name.substr(kPrefix.size()))) return *bare;
  }
  return file.at(name);
}

void check_shape(const TensorView& tensor, const HfParameter& parameter, const HfPiece& piece,
                 const std::string& origin) {
  const auto rows = as_size(piece.rows);
  const auto cols = as_size(parameter.cols);
  std::vector<std::uint64_t> expected{rows, cols};
  if (parameter.vector) expected = {cols};
  if (piece.transposed) expected = {cols, rows};
  if (tensor.shape != expected) {
    throw DataError(fmt::format("{}: {} has shape [{}], config.json asks for [{}]", origin,
                                tensor.name, fmt::join(tensor.shape, ", "),
                                fmt::join(expected, ", ")));
  }
}

std::vector<float> read_parameter(const SafetensorsModel& file, const HfParameter& parameter,
                                  const std::string& origin) {
  const auto cols = as_size(parameter.cols);
  // The shapes first: a config may ask for any size, but the tensors are only as large as the file.
  for (const HfPiece& piece : parameter.pieces) {
    check_shape(find_tensor(file, piece.name), parameter, piece, origin);
  }
  std::vector<float> values(as_size(parameter.rows) * cols);
  for (const HfPiece& piece : parameter.pieces) {
    const TensorView& tensor = find_tensor(file, piece.name);
    const auto rows = as_size(piece.rows);
    std::vector<float> read(rows * cols);
    copy_as_f32(tensor, read);
    float* out = values.data() + as_size(piece.first_row) * cols;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < cols; ++c) {
        out[r * cols + c] = piece.transposed ? read[c * rows + r] : read[r * cols + c];
      }
    }
  }
  return values;
}

}  // namespace

ImportedModel import_hf(const std::filesystem::path& folder) {
  const std::string origin = folder.string();
  const HfModel hf = read_hf_config(folder);
  if (hf.model_type != "gpt2" && hf.model_type != "llama" && hf.model_type != "mistral") {
    throw ConfigError(fmt::format(
        "{}: models of type '{}' are not imported; gpt2, llama and mistral are (probe, eval and "
        "generate read more families as they are)",
        origin, hf.model_type));
  }
  ImportedModel model;
  model.format = hf.model_type == "gpt2" ? HfFormat::gpt2 : HfFormat::llama;
  model.spec = spec_of(hf, read_json_file(folder / "config.json"), origin);
  const SafetensorsModel file(folder);
  for (const HfParameter& parameter : hf_parameters(model.spec, model.format)) {
    model.parameters[parameter.name] = read_parameter(file, parameter, origin);
  }
  return model;
}

}  // namespace fathom::model
