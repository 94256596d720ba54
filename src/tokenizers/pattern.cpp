#include "tokenizers/pattern.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/error.h"
#include "core/text.h"
#include "core/utf8.h"

namespace fathom::tokenizers {

struct Pattern::State {
  pcre2_code* code = nullptr;
  ~State() { pcre2_code_free(code); }
};

Pattern::Pattern(const std::string& expression, const std::string& origin)
    : state_(std::make_unique<State>()) {
  int error = 0;
  PCRE2_SIZE at = 0;
  state_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr);
  if (state_->code == nullptr) {
    throw DataError(fmt::format("{}: '{}' is not a regular expression (character {})", origin,
                                printable(expression), at));
  }
  pcre2_jit_compile(state_->code, PCRE2_JIT_COMPLETE);  // without it matching is slower, not wrong
}

Pattern Pattern::literal(const std::string& text, const std::string& origin) {
  std::string quoted;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}#-").find(c) != std::string_view::npos) quoted += '\\';
    quoted += c;
  }
  return {quoted, origin};
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;

std::vector<Stretch> Pattern::cut(std::string_view text) const {
  struct Match {
    pcre2_match_data* data;
    explicit Match(const pcre2_code* code)
        : data(pcre2_match_data_create_from_pattern(code, nullptr)) {}
    ~Match() { pcre2_match_data_free(data); }
  } match(state_->code);
  std::vector<Stretch> stretches;
  std::size_t done = 0, from = 0;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  while (from < text.size()) {
    int found = pcre2_match(state_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK,
                            match.data, nullptr);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      found = pcre2_match(state_->code, subject, text.size(), from,
                          PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match.data, nullptr);
    }
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) throw DataError("a tokenizer's regular expression takes too long on this text");
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match.data);
    const std::size_t begin = ends[0], end = ends[1];
    if (end == begin) {  // an empty match moves on by one character
      std::size_t next = begin;
      if (next < text.size() && next_code_point(text, next) < 0) ++next;
      from = next;
      continue;
    }
    if (begin > done) stretches.push_back({text.substr(done, begin - done), false});
    stretches.push_back({text.substr(begin, end - begin), true});
    done = from = end;
  }
  if (done < text.size()) stretches.push_back({text.substr(done), false});
  return stretches;
}

std::string Pattern::replace(std::string_view text, std::string_view by) const {
  std::string result;
  for (const Stretch& stretch : cut(text)) result += stretch.match ? by : stretch.text;
  return result;
}

}  // namespace fathom::tokenizers
