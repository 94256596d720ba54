#include "tokenizers/unicode.h"

#include <utf8proc.h>

#include <cstdlib>

namespace fathom::tokenizers {
namespace {

utf8proc_category_t category(std::int32_t c) {
  return c < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(c);
}

bool between(utf8proc_category_t x, utf8proc_category_t low, utf8proc_category_t high) {
  return x >= low && x <= high;
}

}  // namespace

std::string normal_form(std::string_view text, NormalForm form) {
  int options = UTF8PROC_STABLE;
  const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  options |= composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &result,
                                             static_cast<utf8proc_option_t>(options));
  if (size < 0) return std::string(text);
  std::string normal(reinterpret_cast<const char*>(result), static_cast<std::size_t>(size));
  std::free(result);  // utf8proc allocates with malloc
  return normal;
}

bool is_whitespace(std::int32_t c) {
  return (c >= 9 && c <= 13) || c == 0x85 ||
         between(category(c), UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}
bool is_number(std::int32_t c) {
  return between(category(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}
bool is_punctuation(std::int32_t c) {
  const bool ascii = (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
                     (c >= 123 && c <= 126);
  return ascii || between(category(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}
bool is_mark(std::int32_t c) {
  return between(category(c), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME);
}
bool is_nonspacing_mark(std::int32_t c) {
  return category(c) == UTF8PROC_CATEGORY_MN;
}
bool is_other(std::int32_t c) {
  return c >= 0 && between(category(c), UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO);
}

bool is_chinese(std::int32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string to_lower_case(std::string_view text) {
  std::string lower;
  for_each_character(text, [&](std::int32_t c, std::string_view bytes) {
    if (c < 0) {
      lower += bytes;
    } else if (c == 0x130) {
      lower += "i\xCC\x87";  // the one letter whose lower case is two characters
    } else {
      append_utf8(lower, static_cast<std::uint32_t>(utf8proc_tolower(c)));
    }
  });
  return lower;
}

std::string filter_characters(std::string_view text, bool (*keep)(std::int32_t)) {
  std::string kept;
  for_each_character(text, [&](std::int32_t c, std::string_view bytes) {
    if (keep(c)) kept += bytes;
  });
  return kept;
}

}  // namespace fathom::tokenizers
