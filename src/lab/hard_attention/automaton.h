// Deterministic finite automata: running, reading from a file, and the minimal one (Hopcroft 1971).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::lab {

/// Complete: every state has a transition on every letter.
struct Dfa {
  std::string alphabet;  // distinct letters; a word is a string of them
  std::size_t start = 0;
  std::vector<bool> accepts;        // by state
  std::vector<std::uint32_t> next;  // next[state * letters + letter]

  std::size_t states() const { return accepts.size(); }
  std::size_t letters() const { return alphabet.size(); }
  std::uint32_t step(std::size_t state, std::size_t letter) const {
    return next[state * letters() + letter];
  }
  /// InternalError for a character outside the alphabet.
  bool contains(std::string_view word) const;
};

/// The letters, checked: 1 to 26 different printable ASCII characters; ConfigError otherwise.
std::string parse_alphabet(const std::string& text);

/// Unreachable states removed, equivalent ones merged, states numbered in breadth-first order from
/// the start: equal languages give equal automata.
Dfa minimal(const Dfa& dfa);

/// A DFA as TOML:
///
///   alphabet = "ab"
///   start = "even"
///   accept = ["even"]
///   [transitions]
///   even = { a = "odd", b = "even" }
///   odd = { a = "even", b = "odd" }
///
/// ConfigError, naming file and place, for anything incomplete or unknown.
Dfa read_dfa(const std::filesystem::path& path);

}  // namespace fathom::lab
