// Training that reads the same text again and again.
#pragma once

#include <cstdint>
#include <string>

namespace fathom::study {

/// Passes over the text that are worth nearly as much as new text (arXiv 2305.16264: up to 4).
inline constexpr double kHarmlessPasses = 4;

/// One sentence, without its full stop, when `tokens` of training take more than kHarmlessPasses
/// over `text_tokens`; else "".
std::string repetition_note(std::int64_t tokens, std::int64_t text_tokens);

}  // namespace fathom::study
