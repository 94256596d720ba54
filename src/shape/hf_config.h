// Reads Hugging Face config.json files into a Shape.
#pragma once

#include <filesystem>
#include <string>

#include "shape/shape.h"

namespace fathom {

struct HfModel {
  std::string model_type;
  Shape shape;
};

/// Knows GPT-2, GPT-NeoX, GPT-J, GPT-Neo, OPT, BLOOM, Falcon, Phi, MPT and the LLaMA-like families
/// (llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text, phi3, olmo, olmo2, starcoder2,
/// stablelm, cohere, smollm3, granite, internlm2), and the mixtures of experts mixtral, qwen2_moe,
/// qwen3_moe, olmoe, deepseek (v1 to v3), kimi_k2, gpt_oss and llama4_text. Of a multimodal model,
/// the language part is read (`text_config`). ConfigError for other types; DataError for files that
/// cannot be read. A folder means its config.json.
HfModel read_hf_config(const std::filesystem::path& path);

}  // namespace fathom
