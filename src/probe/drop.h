// Cutting layers for good: what it costs on a text, and the folder without them.
#pragma once

#include <filesystem>
#include <vector>

#include "probe/paired.h"
#include "probe/sweep.h"

namespace fathom::probe {

/// "9,10" or "3-5,8", from 0. ConfigError for layers the model does not have, or all of them.
std::vector<std::int64_t> parse_layers(const std::string& text, std::int64_t depth);

struct DropCost {
  Cost before, after;  // losses
  Cost cost;           // their paired difference
};
DropCost measure_drop(Sweep& sweep, std::span<const Window> windows,
                      const std::vector<std::int64_t>& dropped);

/// Writes a Hugging Face folder without the layers: the others renumbered, lists per layer in the
/// config cut to fit, tokenizer files copied. Weights of a folder keep their types; GGUF and
/// llama2.c files are written as f32. ConfigError for what cannot be written that way.
void write_pruned(const std::filesystem::path& model, const std::vector<std::int64_t>& dropped,
                  const std::filesystem::path& folder);

}  // namespace fathom::probe
