#include "lab/hard_attention/expression_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"

namespace fathom::lab {
namespace {

constexpr std::size_t kMaxText = 10000;
constexpr std::size_t kMaxNesting = 200;

/// What one item of a class names: a letter twice, or the ends of a range.
struct ClassItem {
  char first = 0;
  char last = 0;
};

/// Reads "x", "\\x" or "x-y" at `at`, which it moves past the item; none where the text ends.
std::optional<ClassItem> read_class_item(const std::string& text, std::size_t& at) {
  const auto read = [&]() -> std::optional<char> {
    if (at < text.size() && text[at] == '\\') ++at;
    if (at >= text.size()) return std::nullopt;
    return text[at++];
  };
  const std::optional<char> first = read();
  if (!first) return std::nullopt;
  const bool range = at + 1 < text.size() && text[at] == '-' && text[at + 1] != ']';
  if (!range) return ClassItem{*first, *first};
  ++at;
  const std::optional<char> last = read();
  if (!last) return std::nullopt;
  return ClassItem{*first, *last};
}

class ExpressionParser {
 public:
  ExpressionParser(const std::string& text, const std::string& alphabet)
      : text_(text), alphabet_(alphabet) {}

  ExpressionPointer run() {
    ExpressionPointer node = either(0);
    if (at_ < text_.size()) fail("an unmatched ')'");
    return node;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(fmt::format("regular expression '{}': {} at character {}",
                                  printable(text_, 60), what, at_ + 1));
  }

  ExpressionPointer either(std::size_t nesting) {
    auto node = std::make_unique<Expression>();
    node->kind = Expression::Kind::either;
    node->parts.push_back(sequence(nesting));
    while (at_ < text_.size() && text_[at_] == '|') {
      ++at_;
      node->parts.push_back(sequence(nesting));
    }
    return node;
  }

  ExpressionPointer sequence(std::size_t nesting) {
    auto node = std::make_unique<Expression>();
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      ExpressionPointer part = atom(nesting);
      std::size_t signs = 0;
      while (at_ < text_.size() && std::string_view("*+?{").find(text_[at_]) != std::string::npos) {
        if (++signs > kMaxNesting)
          fail(fmt::format("more than {} repetitions in a row", kMaxNesting));
        part = repeated(std::move(part));
      }
      node->parts.push_back(std::move(part));
    }
    return node;
  }

  ExpressionPointer atom(std::size_t nesting) {
    const char c = text_[at_];
    if (c == '(') {
      if (nesting >= kMaxNesting) fail(fmt::format("more than {} brackets deep", kMaxNesting));
      const std::size_t open = at_++;
      ExpressionPointer inside = either(nesting + 1);
      if (at_ >= text_.size()) {
        at_ = open;
        fail("a '(' without ')'");
      }
      ++at_;
      return inside;
    }
    if (c == '[') return letter_class();
    if (c == '*' || c == '+' || c == '?' || c == '{') fail(fmt::format("nothing before '{}'", c));
    if (c == ']' || c == '}') fail(fmt::format("an unmatched '{}'", c));
    auto node = std::make_unique<Expression>();
    node->kind = Expression::Kind::letters;
    if (c == '.') {
      node->letters = all_letters();
    } else {
      if (c == '\\') {
        check_escape();
        if (++at_ >= text_.size()) fail("nothing after '\\'");
      }
      node->letters = letter(text_[at_]);
    }
    ++at_;
    return node;
  }

  /// \d, \w and the like are classes elsewhere; here they would be letters.
  void check_escape() const {
    if (text_[at_] != '\\' || at_ + 1 >= text_.size()) return;
    const char c = text_[at_ + 1];
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) return;
    fail(fmt::format("'\\{}', but {} is no sign; write {} for the letter and [01] for a class", c,
                     c, c));
  }

  ExpressionPointer letter_class() {
    const std::size_t open = at_++;
    const bool negated = at_ < text_.size() && text_[at_] == '^';
    if (negated) ++at_;
    LetterSet set = 0;
    while (at_ < text_.size() && text_[at_] != ']') {
      check_escape();
      const std::size_t begin = at_;
      const std::optional<ClassItem> item = read_class_item(text_, at_);
      if (!item) break;
      const std::size_t end = std::exchange(at_, begin);  // errors point to the item's beginning
      if (item->first > item->last) fail("a range whose ends are swapped");
      for (char c = item->first; c <= item->last; ++c) set |= letter(c);  // ASCII: no overflow
      at_ = end;
    }
    if (at_ >= text_.size()) {
      at_ = open;
      fail("a '[' without ']'");
    }
    ++at_;
    auto node = std::make_unique<Expression>();
    node->kind = Expression::Kind::letters;
    node->letters = negated ? all_letters() & ~set : set;
    if (negated && node->letters == 0) {
      at_ = open;
      fail("a class that leaves no letter");
    }
    return node;
  }

  ExpressionPointer repeated(ExpressionPointer part) {
    auto node = std::make_unique<Expression>();
    node->kind = Expression::Kind::repeat;
    const char c = text_[at_];
    node->least = c == '+' ? 1 : 0;
    node->most = c == '?' ? 1 : Expression::kNoLimit;
    if (c == '{') {
      ++at_;
      node->least = number();
      node->most = node->least;
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        node->most = at_ < text_.size() && text_[at_] == '}' ? Expression::kNoLimit : number();
      }
      if (at_ >= text_.size() || text_[at_] != '}') fail("a '{' that is not {m}, {m,} or {m,n}");
      if (node->least > node->most) fail("a repetition whose least is above its most");
    }
    ++at_;
    node->parts.push_back(std::move(part));
    return node;
  }

  std::uint32_t number() {
    const std::size_t begin = at_;
    std::uint32_t value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      value = value * 10 + static_cast<std::uint32_t>(text_[at_++] - '0');
      if (value > kMaxLettersWritten)
        fail(fmt::format("a repetition above {}", kMaxLettersWritten));
    }
    if (at_ == begin) fail("a '{' that is not {m}, {m,} or {m,n}");
    return value;
  }

  LetterSet letter(char c) const {
    const std::size_t index = alphabet_.find(c);
    if (index == std::string::npos) {
      fail(fmt::format("'{}' is not in the alphabet {}", printable(std::string(1, c)), alphabet_));
    }
    return LetterSet{1} << index;
  }
  LetterSet all_letters() const { return (LetterSet{1} << alphabet_.size()) - 1; }

  const std::string& text_;
  const std::string& alphabet_;
  std::size_t at_ = 0;
};

/// ConfigError for what no alphabet can hold.
void check_characters(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] > ' ' && text[i] <= '~') continue;
    throw ConfigError(
        fmt::format("regular expression '{}': letters must be printable ASCII characters without "
                    "spaces, unlike character {}",
                    printable(text, 60), i + 1));
  }
}

}  // namespace

ExpressionPointer parse_expression(const std::string& text, const std::string& alphabet) {
  if (text.empty()) {
    throw ConfigError("the regular expression is empty; write () for the empty word");
  }
  if (text.size() > kMaxText) {
    throw ConfigError(fmt::format("a regular expression has at most {} characters, not {}",
                                  format_whole(kMaxText),
                                  format_whole(static_cast<std::int64_t>(text.size()))));
  }
  check_characters(text);
  return ExpressionParser(text, alphabet).run();
}

std::string named_letters(const std::string& text) {
  check_characters(text);
  std::set<char> letters;
  bool in_class = false;
  bool counting = false;
  for (std::size_t at = 0; at < text.size();) {
    if (in_class && text[at] != ']') {
      const std::optional<ClassItem> item = read_class_item(text, at);
      if (!item) break;
      letters.insert({item->first, item->last});
      for (char c = item->first; c < item->last; ++c) letters.insert(c);
      continue;
    }
    const bool escaped = text[at] == '\\' && at + 1 < text.size();
    const char c = text[escaped ? at + 1 : at];
    at += escaped ? 2 : 1;
    if (!escaped && (c == '[' || c == ']')) in_class = c == '[';
    if (in_class && at < text.size() && text[at] == '^') ++at;
    if (!escaped && (c == '{' || c == '}')) counting = c == '{';
    const bool sign = std::string_view("()[]{}|*+?.^\\").find(c) != std::string::npos;
    if (!counting && (escaped || !sign)) letters.insert(c);
  }
  return {letters.begin(), letters.end()};
}

std::uint64_t letters_written(const Expression& expression) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;
  if (expression.kind == Expression::Kind::letters) return 1;
  std::uint64_t sum = 0;
  for (const ExpressionPointer& part : expression.parts) sum += letters_written(*part);
  if (expression.kind == Expression::Kind::repeat) {
    const std::uint64_t copies =
        expression.most == Expression::kNoLimit ? std::max(expression.least, 1u) : expression.most;
    sum *= std::max<std::uint64_t>(copies, 1);
  }
  return std::min(sum, kHuge);
}

}  // namespace fathom::lab
