// Evaluation and generation with models made elsewhere, on the processor in f32.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "pretrained/weights.h"
#include "probe/paired.h"
#include "probe/windows.h"
#include "train/weights.h"

namespace fathom::probe {

struct TextLoss {
  Cost loss;  // nats per token
  std::optional<double> bits_per_byte;
  std::int64_t tokens = 0;
};
/// Of masked tokens for an encoder (windows.h); ConfigError for one without a head.
TextLoss evaluate_text(pretrained::Weights& weights, const ProbeText& text, unsigned threads);

/// Continues the prompt, preceded by what the tokenizer puts before a text; the last `context`
/// tokens are read again for every new token.
void generate_text(pretrained::Weights& weights, const std::string& prompt,
                   const train::GenerationOptions& options,
                   const std::function<void(std::string_view)>& emit);

}  // namespace fathom::probe
