// Models in Hugging Face's layouts: config.json and model.safetensors, GPT-2 and LLaMA.
//
// Export folds what those layouts have no place for into weights, exactly in real arithmetic: the
// attention scale into the query rows, the residual branch multiplier into the projections that
// write to the stream, the head multiplier into the final norm. Import gives a model of the
// standard parametrisation.
//
//   GPT-2:  pre-norm LayerNorm, learned positions, GELU (either form), biases, plain heads
//   LLaMA:  pre-norm RMSNorm, rotary positions, SwiGLU, no biases, grouped-query heads allowed
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/model_spec.h"

namespace fathom::model {

enum class HfFormat : std::uint8_t { gpt2, llama };
constexpr auto enum_names(HfFormat) {
  return std::array{"hf-gpt2", "hf-llama"};
}

/// Values by Fathom's parameter names (transformer.h), row-major.
using ParameterValues = std::map<std::string, std::vector<float>>;

/// ConfigError, naming the switch, when the layout cannot express the model.
void check_expressible(const ModelSpec& spec, HfFormat format);

/// Writes config.json and model.safetensors (f32) into the folder, which is created if necessary.
void export_hf(const ModelSpec& spec, const ParameterValues& parameters, HfFormat format,
               const std::filesystem::path& folder);

struct ImportedModel {
  HfFormat format;
  ModelSpec spec;
  ParameterValues parameters;
};
/// Reads a folder with config.json and safetensors, whole or sharded. ConfigError for other
/// architectures or switches, DataError for missing tensors and wrong shapes.
ImportedModel import_hf(const std::filesystem::path& folder);

}  // namespace fathom::model
