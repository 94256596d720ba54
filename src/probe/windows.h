// The text a model is probed on: windows of token ids with the targets that count.
//
// A text is cut into stretches of equal length, each preceded by what the tokenizer puts before a
// text, and windows are spread evenly over it. Ids given by the user are used as they are.
//
// Encoders are asked for masked tokens: in every window 15 % of the text's positions, at least one,
// hold the tokenizer's mask token, and only they count. They are drawn from the window's place in
// the text and nothing else, so they are the same for every variant and differences stay paired.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "pretrained/layout.h"

namespace fathom::probe {

using data::TokenId;

struct Window {
  std::vector<TokenId> inputs;
  std::vector<TokenId> targets;  // as long as inputs; -1: does not count
  std::int64_t target_count() const;
};

/// What a model is asked for; `states`: an encoder without a head is asked for nothing.
enum class Task : std::uint8_t { next_token, masked_token, states };

inline constexpr double kMaskedShare = 0.15;

struct ProbeText {
  std::vector<Window> windows;
  std::string name;  // for people: "sotu", "notes.txt"
  bool measures_bytes = false;
  std::vector<std::uint32_t> token_bytes;  // of every id, where the tokenizer is known

  std::int64_t target_count() const;
};

struct TextRequest {
  std::string text;     // a text file, a folder of them, a named corpus or a prepared one
  std::string ids;      // a file of ids instead, one window a line
  std::string targets;  // besides ids: the target at each position; -1 does not count
  std::int64_t window = 512;
  std::int64_t most_tokens = 65536;
  Task task = Task::next_token;
};

Task task_of(const pretrained::Layout& layout);

/// DataError for an empty text, one shorter than a window, ids that are not numbers, a tokenizer
/// without a mask token where one is needed.
ProbeText read_probe_text(const TextRequest& request, const data::Tokenizer* tokenizer,
                          const std::string& tokenizer_note);

}  // namespace fathom::probe
