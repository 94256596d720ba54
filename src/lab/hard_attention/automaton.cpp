#include "lab/hard_attention/automaton.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "core/error.h"
#include "core/text.h"
#include "core/toml_reader.h"

namespace fathom::lab {
namespace {

constexpr std::size_t kMaxLetters = 26;
constexpr std::size_t kMaxFileStates = 100000;
constexpr std::uint32_t kUnknown = 0xffffffff;

/// States in breadth-first order.
std::vector<std::uint32_t> reachable(const Dfa& dfa) {
  std::vector<std::uint32_t> order{static_cast<std::uint32_t>(dfa.start)};
  std::vector<bool> seen(dfa.states());
  seen[dfa.start] = true;
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (std::size_t a = 0; a < dfa.letters(); ++a) {
      const std::uint32_t to = dfa.step(order[at], a);
      if (!seen[to]) order.push_back(to);
      seen[to] = true;
    }
  }
  return order;
}

/// Only the states of `order`, in that order.
Dfa restricted(const Dfa& dfa, const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> place(dfa.states(), kUnknown);
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::uint32_t>(i);
  Dfa result{dfa.alphabet, place[dfa.start], {}, {}};
  for (const std::uint32_t state : order) {
    result.accepts.push_back(dfa.accepts[state]);
    for (std::size_t a = 0; a < dfa.letters(); ++a) {
      result.next.push_back(place[dfa.step(state, a)]);
    }
  }
  return result;
}

/// Hopcroft's refinement: blocks of states that no word distinguishes.
class Refinement {
 public:
  explicit Refinement(const Dfa& dfa)
      : dfa_(dfa), block_of_(dfa.states(), 0), into_(dfa.letters()), marked_(dfa.states()) {
    for (auto& by_state : into_) by_state.resize(dfa.states());
    for (std::uint32_t s = 0; s < dfa.states(); ++s) {
      for (std::size_t a = 0; a < dfa.letters(); ++a) into_[a][dfa.step(s, a)].push_back(s);
    }
    std::vector<std::uint32_t> inside;
    std::vector<std::uint32_t> outside;
    for (std::uint32_t s = 0; s < dfa.states(); ++s) {
      (dfa.accepts[s] ? inside : outside).push_back(s);
    }
    for (auto* members : {&inside, &outside}) {
      if (!members->empty()) add_block(std::move(*members));
    }
  }

  std::vector<std::uint32_t> run() {
    while (!waiting_.empty()) {
      const auto [block, letter] = waiting_.front();
      waiting_.pop_front();
      split_by(block, letter);
    }
    return block_of_;
  }

 private:
  void add_block(std::vector<std::uint32_t> members) {
    const auto id = static_cast<std::uint32_t>(blocks_.size());
    for (const std::uint32_t s : members) block_of_[s] = id;
    blocks_.push_back(std::move(members));
    for (std::size_t a = 0; a < dfa_.letters(); ++a) waiting_.emplace_back(id, a);
  }

  /// Splits every block into the states that `letter` leads into `splitter` and the rest.
  void split_by(std::uint32_t splitter, std::size_t letter) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> hit;
    const std::vector<std::uint32_t> members = blocks_[splitter];
    for (const std::uint32_t t : members) {
      for (const std::uint32_t s : into_[letter][t]) hit[block_of_[s]].push_back(s);
    }
    for (auto& [block, inside] : hit) {
      std::vector<std::uint32_t>& all = blocks_[block];
      if (inside.size() == all.size()) continue;
      for (const std::uint32_t s : inside) marked_[s] = true;
      std::vector<std::uint32_t> rest;
      for (const std::uint32_t s : all) {
        if (!marked_[s]) rest.push_back(s);
      }
      for (const std::uint32_t s : inside) marked_[s] = false;
      // The larger part keeps the name, so that every state is renamed at most log2 n times.
      if (inside.size() > rest.size()) std::swap(inside, rest);
      all = std::move(rest);
      add_block(std::move(inside));
    }
  }

  const Dfa& dfa_;
  std::vector<std::uint32_t> block_of_;
  std::vector<std::vector<std::uint32_t>> blocks_;
  std::vector<std::vector<std::vector<std::uint32_t>>> into_;  // by letter and state: predecessors
  std::deque<std::pair<std::uint32_t, std::size_t>> waiting_;
  std::vector<bool> marked_;
};

}  // namespace

bool Dfa::contains(std::string_view word) const {
  std::size_t state = start;
  for (const char c : word) {
    const std::size_t letter = alphabet.find(c);
    if (letter == std::string::npos) throw InternalError("a word outside the alphabet");
    state = step(state, letter);
  }
  return accepts[state];
}

std::string parse_alphabet(const std::string& text) {
  if (text.empty())
    throw ConfigError("the alphabet is empty; name its letters, e.g. --alphabet ab");
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] <= ' ' || text[i] > '~') {
      throw ConfigError(
          fmt::format("alphabet '{}': letters must be printable ASCII characters without spaces",
                      printable(text)));
    }
    if (text.find(text[i]) != i) {
      throw ConfigError(
          fmt::format("alphabet '{}' names the letter {} twice", printable(text), text[i]));
    }
  }
  if (text.size() > kMaxLetters) {
    throw ConfigError(
        fmt::format("an alphabet has at most {} letters, not {}", kMaxLetters, text.size()));
  }
  return text;
}

Dfa minimal(const Dfa& given) {
  const Dfa dfa = restricted(given, reachable(given));
  const std::vector<std::uint32_t> block_of = Refinement(dfa).run();
  const std::size_t blocks = *std::max_element(block_of.begin(), block_of.end()) + 1;
  Dfa merged{dfa.alphabet, block_of[dfa.start], std::vector<bool>(blocks),
             std::vector<std::uint32_t>(blocks * dfa.letters())};
  for (std::size_t s = 0; s < dfa.states(); ++s) {
    merged.accepts[block_of[s]] = dfa.accepts[s];
    for (std::size_t a = 0; a < dfa.letters(); ++a) {
      merged.next[block_of[s] * dfa.letters() + a] = block_of[dfa.step(s, a)];
    }
  }
  return restricted(merged, reachable(merged));
}

Dfa read_dfa(const std::filesystem::path& path) {
  TomlReader file = TomlReader::from_file(path);
  Dfa dfa;
  const std::string letters = file.text("alphabet");
  try {
    dfa.alphabet = parse_alphabet(letters);
  } catch (const ConfigError& error) {
    file.fail("alphabet", fmt::format("is wrong: {}", error.what()));
  }
  TomlReader transitions = file.table("transitions");
  const std::vector<std::string> names = transitions.keys();
  if (names.empty()) file.fail("transitions", "is empty; an automaton needs a state");
  if (names.size() > kMaxFileStates) {
    file.fail("transitions", fmt::format("has more than {} states", kMaxFileStates));
  }
  std::map<std::string, std::uint32_t> number;
  for (const std::string& name : names) {
    number.emplace(name, static_cast<std::uint32_t>(number.size()));
  }
  const auto find = [&](TomlReader& table, const std::string& key, const std::string& name) {
    const auto found = number.find(name);
    if (found != number.end()) return found->second;
    table.fail(key, fmt::format("names the state '{}', which has no transitions.{}",
                                printable(name), did_you_mean(name, names)));
  };
  dfa.accepts.resize(names.size());
  for (const std::string& name : names) {
    TomlReader row = transitions.table(name);
    for (const char letter : dfa.alphabet) {
      const std::string key(1, letter);
      dfa.next.push_back(find(row, key, row.text(key)));
    }
    row.finish();
  }
  transitions.finish();
  dfa.start = find(file, "start", file.text("start"));
  for (const std::string& name : file.list("accept"))
    dfa.accepts[find(file, "accept", name)] = true;
  file.finish();  // a misspelt key is reported before a missing one
  if (!file.has("accept")) {
    file.fail("accept", "is missing; name the states that accept, [] for none");
  }
  return dfa;
}

}  // namespace fathom::lab
