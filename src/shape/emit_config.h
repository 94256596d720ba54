// Writing of a shape as a configuration that other tools accept.
#pragma once

#include <string>
#include <vector>

#include "shape/shape.h"

namespace fathom {

enum class ConfigFormat { hf_gpt2, hf_llama, megatron, nanogpt };
ConfigFormat parse_config_format(const std::string& name);
std::vector<std::string> config_format_names();

/// Whether the format describes gated feed-forwards without biases (LLaMA) or plain ones (GPT-2).
bool wants_gated(ConfigFormat format);

/// hf-*: config.json; megatron: command-line arguments; nanogpt: a Python config file.
/// ConfigError when the format cannot express the shape.
std::string emit_config(const Shape& shape, ConfigFormat format);

}  // namespace fathom
