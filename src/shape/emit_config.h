// Writes a shape as a configuration that other tools accept.
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

/// Degrees of parallelism that a launcher needs alongside the shape.
struct ParallelSizes {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
};

/// hf-*: config.json; megatron: command-line arguments with the parallel sizes; nanogpt: a Python
/// config file. ConfigError when the format cannot express the shape.
std::string emit_config(const Shape& shape, ConfigFormat format,
                        const ParallelSizes& parallel = {});

}  // namespace fathom
