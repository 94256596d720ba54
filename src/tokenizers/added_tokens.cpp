#include "tokenizers/added_tokens.h"

#include <array>

#include "tokenizers/unicode.h"

namespace fathom::tokenizers {
namespace {

/// Whether a letter, digit or underscore touches the place from that side.
bool touches_word(std::string_view text, std::size_t at, bool before) {
  if (before ? at == 0 : at >= text.size()) return false;
  std::size_t begin = at;
  if (before) {
    begin = utf8_boundary(text, at - 1);
  }
  const std::int32_t c = next_code_point(text, begin);
  return c == '_' || (c > 0 && !is_whitespace(c) && !is_punctuation(c) && !is_other(c));
}

const AddedToken* longest_at(std::string_view text, std::size_t at,
                             const std::vector<const AddedToken*>& candidates) {
  const AddedToken* best = nullptr;
  for (const AddedToken* token : candidates) {
    if (token->text.empty() || !text.substr(at).starts_with(token->text)) continue;
    if (token->single_word &&
        (touches_word(text, at, true) || touches_word(text, at + token->text.size(), false))) {
      continue;
    }
    if (best == nullptr || token->text.size() > best->text.size()) best = token;
  }
  return best;
}

std::size_t blanks_before(std::string_view text, std::size_t from, std::size_t at) {
  while (at > from) {
    const std::size_t begin = utf8_boundary(text, at - 1);
    std::size_t next = begin;
    if (begin < from || !is_whitespace(next_code_point(text, next))) break;
    at = begin;
  }
  return at;
}

std::size_t blanks_after(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    std::size_t next = at;
    if (!is_whitespace(next_code_point(text, next))) break;
    at = next;
  }
  return at;
}

}  // namespace

std::vector<AddedCut> cut_added(std::string_view text, const std::vector<AddedToken>& tokens) {
  std::array<std::vector<const AddedToken*>, 256> by_first;
  for (const AddedToken& token : tokens) {
    if (!token.text.empty()) {
      by_first[static_cast<unsigned char>(token.text.front())].push_back(&token);
    }
  }
  std::vector<AddedCut> cuts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* token = longest_at(text, at, by_first[static_cast<unsigned char>(text[at])]);
    if (token == nullptr) {
      ++at;
      continue;
    }
    const std::size_t begin = token->strip_left ? blanks_before(text, done, at) : at;
    std::size_t end = at + token->text.size();
    if (token->strip_right) end = blanks_after(text, end);
    if (begin > done) cuts.push_back({text.substr(done, begin - done)});
    cuts.push_back({text.substr(begin, end - begin), token->id});
    done = at = end;
  }
  if (done < text.size()) cuts.push_back({text.substr(done)});
  return cuts;
}

}  // namespace fathom::tokenizers
