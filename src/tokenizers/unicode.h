// Unicode as tokenizers need it: normal forms, classes of characters, lower case (utf8proc).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fathom::tokenizers {

enum class NormalForm { nfc, nfd, nfkc, nfkd };
/// Text that is not valid UTF-8 is returned as it is.
std::string normal_form(std::string_view text, NormalForm form);

bool is_whitespace(std::int32_t c);
bool is_number(std::int32_t c);       // category N
bool is_punctuation(std::int32_t c);  // category P, and ASCII's symbols
bool is_mark(std::int32_t c);         // category M
bool is_nonspacing_mark(std::int32_t c);
bool is_other(std::int32_t c);  // category C, but for unassigned characters
/// The range is that of BERT's reference tokenizer.
bool is_chinese(std::int32_t c);

std::string to_lower_case(std::string_view text);

/// Calls visit(code point, its bytes) for every character; a byte that is not UTF-8 comes as -1.
template <class Visit>
void for_each_character(std::string_view text, const Visit& visit);

/// The text with only the characters that `keep` accepts.
std::string filter_characters(std::string_view text, bool (*keep)(std::int32_t));

}  // namespace fathom::tokenizers

#include "core/utf8.h"

template <class Visit>
void fathom::tokenizers::for_each_character(std::string_view text, const Visit& visit) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::int32_t c = next_code_point(text, at);
    if (c < 0) ++at;
    visit(c, text.substr(begin, at - begin));
  }
}
