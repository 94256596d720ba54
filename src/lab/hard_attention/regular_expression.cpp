#include "lab/hard_attention/regular_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/units.h"
#include "lab/hard_attention/expression_tree.h"

namespace fathom::lab {
namespace {

constexpr std::size_t kMaxStates = 50000;        // of the automaton before it is minimised
constexpr std::size_t kMaxMembers = 50'000'000;  // of all its sets together

/// Thompson's automaton: states with at most two empty moves or one move on letters.
class Thompson {
 public:
  struct State {
    std::vector<std::uint32_t> empty;
    LetterSet letters = 0;
    std::uint32_t to = 0;
  };

  explicit Thompson(const Expression& node) {
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
  std::uint32_t build(const Expression& node, std::uint32_t from) {
    switch (node.kind) {
      case Expression::Kind::letters: {
        const std::uint32_t to = add();
        const std::uint32_t edge = add();
        states[from].empty.push_back(edge);
        states[edge].letters = node.letters;
        states[edge].to = to;
        return to;
      }
      case Expression::Kind::sequence:
        for (const ExpressionPointer& part : node.parts) from = build(*part, from);
        return from;
      case Expression::Kind::either: {
        if (node.parts.size() == 1) return build(*node.parts.front(), from);
        const std::uint32_t joined = add();
        for (const ExpressionPointer& part : node.parts) {
          const std::uint32_t branch = add();
          states[from].empty.push_back(branch);
          const std::uint32_t branch_end = build(*part, branch);
          states[branch_end].empty.push_back(joined);
        }
        return joined;
      }
      case Expression::Kind::repeat:
        return build_repeat(node, from);
    }
    throw InternalError("unknown node of a regular expression");
  }

  std::uint32_t build_repeat(const Expression& node, std::uint32_t from) {
    const Expression& part = *node.parts.front();
    for (std::uint32_t i = 0; i < node.least; ++i) from = build(part, from);
    if (node.most == Expression::kNoLimit) {
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
  /// `positions`: letters of the expression, written out.
  SubsetConstruction(const Thompson& nfa, const std::string& alphabet, std::uint64_t positions)
      : nfa_(nfa), positions_(positions), seen_(nfa.states.size()) {
    dfa_.alphabet = alphabet;
  }

  Dfa run() {
    dfa_.start = state_of(closure({nfa_.start}));
    std::size_t done = 0;
    while (done < sets_.size()) {  // new sets are appended
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
    // Only states with moves on letters, and the end, distinguish sets.
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
          positions_, format_whole(kMaxStates), positions_));
    }
    return entry->second;
  }

  const Thompson& nfa_;
  std::uint64_t positions_;
  std::vector<bool> seen_;
  std::map<Set, std::size_t> numbers_;
  std::vector<const Set*> sets_;
  std::size_t members_ = 0;
  Dfa dfa_;
};

}  // namespace

Dfa compile_expression(const std::string& expression, const std::string& alphabet) {
  const std::string letters = alphabet.empty() && !expression.empty()
                                  ? parse_alphabet(named_letters(expression))
                                  : parse_alphabet(alphabet);
  const ExpressionPointer tree = parse_expression(expression, letters);
  const std::uint64_t size = letters_written(*tree);
  if (size > kMaxLettersWritten) {
    throw ConfigError(fmt::format(
        "the regular expression has {} letters once its repetitions are written out; at most {} "
        "are taken",
        format_whole(static_cast<std::int64_t>(size)), format_whole(kMaxLettersWritten)));
  }
  const Thompson nfa(*tree);
  return minimal(SubsetConstruction(nfa, letters, size).run());
}

std::string stair_expression(std::size_t k) {
  std::string expression = "[abc]*a";
  for (std::size_t i = 1; i < k; ++i) expression += "c*a";
  return expression + "[abc]*";
}

}  // namespace fathom::lab
