// Tokens that are cut out of the text before anything else looks at it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/token_file.h"

namespace fathom::tokenizers {

struct AddedToken {
  std::string text;
  data::TokenId id = 0;
  bool special = false;      // stands for no text
  bool normalised = false;   // looked for after normalisation
  bool single_word = false;  // not inside a word
  bool strip_left = false;   // takes white space before it along
  bool strip_right = false;
};

/// A stretch of text, or one added token (id >= 0).
struct AddedCut {
  std::string_view text;
  data::TokenId id = -1;
};

/// Leftmost first, of several at one place the longest.
std::vector<AddedCut> cut_added(std::string_view text, const std::vector<AddedToken>& tokens);

}  // namespace fathom::tokenizers
