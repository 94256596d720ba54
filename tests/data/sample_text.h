// Deterministic English-like text for tests: words by a Zipf-like draw, sentences, paragraphs.
#pragma once

#include <array>
#include <cmath>
#include <string>

#include "core/random.h"

namespace fathom::data {

inline std::string sample_text(std::size_t words, std::uint64_t seed) {
  constexpr std::array<const char*, 40> kWords{
      "the",     "of",         "and",      "to",      "in",       "a",         "is",     "that",
      "depth",   "width",      "network",  "layer",   "between",  "through",   "which",  "model",
      "measure", "training",   "language", "because", "question", "attention", "theory", "number",
      "deeper",  "wider",      "however",  "several", "computed", "parameter", "result", "sequence",
      "rank",    "separation", "function", "always",  "without",  "little",    "great",  "nation"};
  const RandomStream random(seed, 1);
  std::string text;
  for (std::size_t i = 0; i < words; ++i) {
    const double u = random.uniform(2 * i);
    text += kWords[static_cast<std::size_t>(u * u * kWords.size())];
    const std::uint64_t end = random.below(2 * i + 1, 30);
    text += end == 0 ? ".\n" : end == 1 ? ", " : end == 2 ? " 1987 " : " ";
  }
  return text;
}

/// Texts that break careless tokenizers; all valid UTF-8.
inline const std::array<std::string, 16>& nasty_texts() {
  using namespace std::string_literals;
  static const std::array<std::string, 16> texts{
      ""s,
      " "s,
      "\n"s,
      "\r\n"s,
      "no final newline"s,
      "line one\r\nline two\r\n\r\n"s,
      "\ttabs\t\tand   runs  of blanks   "s,
      "  leading blanks"s,
      "NUL \0 inside\0\0"s,
      "emoji \U0001F600\U0001F468\u200D\U0001F469\u200D\U0001F467 and CJK \u6DF1\u5EA6"s,
      "combining e\u0301 and \uFB01 ligature \u00BD \u2460"s,
      "blank mark \u2581\u2581 itself \u2581x"s,
      "<s></s><unk><0x41> <pad> [CLS]"s,
      "\uFEFFbyte order mark, \u00A0 no-break, \u3000 ideographic blank, \u2028 separator"s,
      "\uFFFD replacement, \U0010FFFF last, \x7f delete, \x01\x02"s,
      "\v\f vertical\x1b[31m escape"s};
  return texts;
}

}  // namespace fathom::data
