// Writing of a shape as a configuration that other tools accept.
#pragma once

#include <string>

#include "shape/shape.h"

namespace fathom {

enum class ConfigFormat { hf_gpt2, hf_llama, megatron, nanogpt };
constexpr auto enum_names(ConfigFormat) {
  return std::array{"hf-gpt2", "hf-llama", "megatron", "nanogpt"};
}

/// Whether the format describes gated feed-forwards without biases (LLaMA) or plain ones (GPT-2).
bool wants_gated(ConfigFormat format);

/// hf-*: config.json; megatron: command-line arguments; nanogpt: a Python config file.
/// ConfigError when the format cannot express the shape.
std::string emit_config(const Shape& shape, ConfigFormat format);

}  // namespace fathom
