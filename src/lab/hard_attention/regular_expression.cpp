#include "lab/hard_attention/regular_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"

namespace fathom::lab {
namespace {

constexpr std::size_t kMaxText = 10000;
constexpr std::size_t kMaxNesting = 200;
constexpr std::uint64_t kMaxPositions = 20000;   // letters once repetitions are written out
constexpr std::size_t kMaxStates = 50000;        // of the automaton before it is minimised
constexpr std::size_t kMaxMembers = 50'000'000;  // of all its sets together
constexpr std::uint32_t kNoLimit = 0xffffffff;

using LetterSet = std::uint32_t;  // one bit per letter

struct Node {
  enum class Kind { letters, sequence, either, repeat };
  Kind kind = Kind::sequence;
  LetterSet letters = 0;
  std::vector<std::unique_ptr<Node>> parts;
  std::uint32_t least = 0;  // repeat
  std::uint32_t most = 0;
};
using NodePointer = std::unique_ptr<Node>;

class Parser {
 public:
  Parser(const std::string& text, const std::string& alphabet) : text_(text), alphabet_(alphabet) {}

  NodePointer run() {
    NodePointer node = either(0);
    if (at_ < text_.size()) fail("an unmatched ')'");
    return node;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(fmt::format("regular expression '{}': {} at character {}",
                                  printable(text_, 60), what, at_ + 1));
  }

  NodePointer either(std::size_t nesting) {
    auto node = std::make_unique<Node>();
    node->kind = Node::Kind::either;
    node->parts.push_back(sequence(nesting));
    while (at_ < text_.size() && text_[at_] == '|') {
      ++at_;
      node->parts.push_back(sequence(nesting));
    }
    return node;
  }

  NodePointer sequence(std::size_t nesting) {
    auto node = std::make_unique<Node>();
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      NodePointer part = atom(nesting);
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

  NodePointer atom(std::size_t nesting) {
    const char c = text_[at_];
    if (c == '(') {
      if (nesting >= kMaxNesting) fail(fmt::format("more than {} brackets deep", kMaxNesting));
      const std::size_t open = at_++;
      NodePointer inside = either(nesting + 1);
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
    auto node = std::make_unique<Node>();
    node->kind = Node::Kind::letters;
    if (c == '.') {
      node->letters = all_letters();
    } else {
      if (c == '\\') {
        if (++at_ >= text_.size()) fail("nothing after '\\'");
      }
      node->letters = letter(text_[at_]);
    }
    ++at_;
    return node;
  }

  NodePointer letter_class() {
    const std::size_t open = at_++;
    const bool negated = at_ < text_.size() && text_[at_] == '^';
    if (negated) ++at_;
    LetterSet set = 0;
    while (at_ < text_.size() && text_[at_] != ']') {
      if (text_[at_] == '\\' && ++at_ >= text_.size()) break;
      set |= letter(text_[at_++]);
    }
    if (at_ >= text_.size()) {
      at_ = open;
      fail("a '[' without ']'");
    }
    ++at_;
    auto node = std::make_unique<Node>();
    node->kind = Node::Kind::letters;
    node->letters = negated ? all_letters() & ~set : set;
    if (negated && node->letters == 0) {
      at_ = open;
      fail("a class that leaves no letter");
    }
    return node;
  }

  NodePointer repeated(NodePointer part) {
    auto node = std::make_unique<Node>();
    node->kind = Node::Kind::repeat;
    const char c = text_[at_];
    node->least = c == '+' ? 1 : 0;
    node->most = c == '?' ? 1 : kNoLimit;
    if (c == '{') {
      ++at_;
      node->least = number();
      node->most = node->least;
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        node->most = at_ < text_.size() && text_[at_] == '}' ? kNoLimit : number();
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
      if (value > kMaxPositions) fail(fmt::format("a repetition above {}", kMaxPositions));
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

/// Letters of the expression when all repetitions are written out.
std::uint64_t positions(const Node& node) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;
  if (node.kind == Node::Kind::letters) return 1;
  std::uint64_t sum = 0;
  for (const NodePointer& part : node.parts) sum += positions(*part);
  if (node.kind == Node::Kind::repeat) {
    const std::uint64_t copies = node.most == kNoLimit ? std::max(node.least, 1u) : node.most;
    sum *= std::max<std::uint64_t>(copies, 1);
  }
  return std::min(sum, kHuge);
}

/// Thompson's automaton: states with at most two empty moves or one move on letters.
class Thompson {
 public:
  struct State {
    std::vector<std::uint32_t> empty;
    LetterSet letters = 0;
    std::uint32_t to = 0;
  };

  explicit Thompson(const Node& node) {
    start = add();
    end = build(node, start);
  }

  std::uint32_t start = 0;
  std::uint32_t end = 0;
  std::vector<State> states;

 private:
  std::uint32_t add() {
    states.emplace_back();
    return static_cast<std::uint32_t>(states.size() - 1);
  }

  /// Appends the node's automaton after `from`; returns its end.
  std::uint32_t build(const Node& node, std::uint32_t from) {
    switch (node.kind) {
      case Node::Kind::letters: {
        const std::uint32_t to = add();
        const std::uint32_t edge = add();
        states[from].empty.push_back(edge);
        states[edge].letters = node.letters;
        states[edge].to = to;
        return to;
      }
      case Node::Kind::sequence:
        for (const NodePointer& part : node.parts) from = build(*part, from);
        return from;
      case Node::Kind::either: {
        if (node.parts.size() == 1) return build(*node.parts.front(), from);
        const std::uint32_t joined = add();
        for (const NodePointer& part : node.parts) {
          const std::uint32_t branch = add();
          states[from].empty.push_back(branch);
          const std::uint32_t branch_end = build(*part, branch);
          states[branch_end].empty.push_back(joined);
        }
        return joined;
      }
      case Node::Kind::repeat:
        return build_repeat(node, from);
    }
    throw InternalError("unknown node of a regular expression");
  }

  std::uint32_t build_repeat(const Node& node, std::uint32_t from) {
    const Node& part = *node.parts.front();
    for (std::uint32_t i = 0; i < node.least; ++i) from = build(part, from);
    if (node.most == kNoLimit) {
      const std::uint32_t loop = add();
      states[from].empty.push_back(loop);
      const std::uint32_t loop_end = build(part, loop);
      states[loop_end].empty.push_back(loop);
      const std::uint32_t out = add();
      states[loop].empty.push_back(out);
      return out;
    }
    const std::uint32_t out = add();
    for (std::uint32_t i = node.least; i < node.most; ++i) {
      states[from].empty.push_back(out);
      from = build(part, from);
    }
    states[from].empty.push_back(out);
    return out;
  }
};

class SubsetConstruction {
 public:
  SubsetConstruction(const Thompson& nfa, const std::string& alphabet)
      : nfa_(nfa), seen_(nfa.states.size()) {
    dfa_.alphabet = alphabet;
  }

  Dfa run() {
    dfa_.start = state_of(closure({nfa_.start}));
    std::size_t done = 0;
    while (done < sets_.size()) {  // new sets join at the end
      const Set& from = *sets_[done++];
      for (std::size_t a = 0; a < dfa_.letters(); ++a) {
        Set targets;
        for (const std::uint32_t s : from) {
          const auto& state = nfa_.states[s];
          if ((state.letters >> a & 1) != 0) targets.push_back(state.to);
        }
        dfa_.next.push_back(static_cast<std::uint32_t>(state_of(closure(std::move(targets)))));
      }
    }
    for (const auto* set : sets_) {
      dfa_.accepts.push_back(std::binary_search(set->begin(), set->end(), nfa_.end));
    }
    return std::move(dfa_);
  }

 private:
  using Set = std::vector<std::uint32_t>;

  Set closure(Set states) {
    Set result;
    while (!states.empty()) {
      const std::uint32_t s = states.back();
      states.pop_back();
      if (seen_[s]) continue;
      seen_[s] = true;
      result.push_back(s);
      for (const std::uint32_t t : nfa_.states[s].empty) states.push_back(t);
    }
    for (const std::uint32_t s : result) seen_[s] = false;
    // Only what letters leave from, and the end, tells sets apart.
    std::erase_if(result,
                  [&](std::uint32_t s) { return nfa_.states[s].letters == 0 && s != nfa_.end; });
    std::sort(result.begin(), result.end());
    return result;
  }

  std::size_t state_of(Set set) {
    members_ += set.size();
    const auto [entry, added] = numbers_.emplace(std::move(set), sets_.size());
    if (added) sets_.push_back(&entry->first);
    if (sets_.size() > kMaxStates || members_ > kMaxMembers) {
      throw ConfigError(fmt::format(
          "the regular expression has {} letters written out; its automaton grows beyond {} "
          "states (it could have 2^{}); take a simpler one, or a DFA",
          nfa_.states.size() / 2, format_whole(kMaxStates), nfa_.states.size() / 2));
    }
    return entry->second;
  }

  const Thompson& nfa_;
  std::vector<bool> seen_;
  std::map<Set, std::size_t> numbers_;
  std::vector<const Set*> sets_;
  std::size_t members_ = 0;
  Dfa dfa_;
};

/// Letters that an expression names, sorted.
std::string named_letters(const std::string& expression) {
  std::set<char> letters;
  bool counting = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    char c = expression[i];
    const bool escaped = c == '\\' && i + 1 < expression.size();
    if (escaped) c = expression[++i];
    if (!escaped && c == '{') counting = true;
    if (!escaped && c == '}') counting = false;
    if (counting) continue;
    if (escaped || std::string_view("()[]{}|*+?.^\\").find(c) == std::string::npos) {
      letters.insert(c);
    }
  }
  return {letters.begin(), letters.end()};
}

}  // namespace

Dfa compile_expression(const std::string& expression, const std::string& alphabet) {
  if (expression.empty()) {
    throw ConfigError("the regular expression is empty; write () for the empty word");
  }
  if (expression.size() > kMaxText) {
    throw ConfigError(fmt::format("a regular expression has at most {} characters, not {}",
                                  format_whole(kMaxText),
                                  format_whole(static_cast<std::int64_t>(expression.size()))));
  }
  const std::string letters =
      parse_alphabet(alphabet.empty() ? named_letters(expression) : alphabet);
  const NodePointer tree = Parser(expression, letters).run();
  const std::uint64_t size = positions(*tree);
  if (size > kMaxPositions) {
    throw ConfigError(fmt::format(
        "the regular expression has {} letters once its repetitions are written out; at most {} "
        "are taken",
        format_whole(static_cast<std::int64_t>(size)), format_whole(kMaxPositions)));
  }
  const Thompson nfa(*tree);
  return minimal(SubsetConstruction(nfa, letters).run());
}

std::string stair_expression(std::size_t k) {
  std::string expression = "[abc]*a";
  for (std::size_t i = 1; i < k; ++i) expression += "c*a";
  return expression + "[abc]*";
}

}  // namespace fathom::lab
