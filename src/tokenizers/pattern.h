// Regular expressions of tokenizer files, by PCRE2 with Unicode classes.
//
// PCRE2 cuts text as the reference library's Oniguruma does, but for U+180E, which it counts as
// white space.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::tokenizers {

/// A stretch of a text and whether the pattern matched it.
struct Stretch {
  std::string_view text;
  bool match;
};

class Pattern {
 public:
  /// DataError when the expression is malformed.
  Pattern(const std::string& expression, const std::string& origin);
  /// A pattern that matches this text and nothing else.
  static Pattern literal(const std::string& text, const std::string& origin);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  /// The whole text as matches and what lies between them, in order, none empty.
  std::vector<Stretch> cut(std::string_view text) const;
  std::string replace(std::string_view text, std::string_view by) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fathom::tokenizers
