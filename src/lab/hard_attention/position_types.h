// Types of positions: what formulas of temporal logic, and with them masked hard-attention
// networks, of a given depth can distinguish (arXiv 2310.13897; Etessami and Wilke 2000).
//
// A word of letters w_1 .. w_n is followed by one end marker. The depth-0 type of a position is its
// letter. Its type at depth k+1 is its type at depth k together with
//
//   since          the distinct depth-k types to its left, the most recent first;
//   since-until    and those to its right, the nearest first, the end marker's among them.
//
// `P since Q` holds exactly when, walking left, a position with Q is met before one without P, and
// that is decided by the order of recency. So two words whose end markers share their depth-k type
// look the same to every formula of depth k: if one is in a language and the other is not, that
// pair PROVES that depth k is not enough, at any width. Finding no such pair up to a length is
// evidence for that length only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "lab/hard_attention/automaton.h"

namespace fathom::lab {

enum class Logic : std::uint8_t { since, since_until };
constexpr auto enum_names(Logic) {
  return std::array{"since", "since-until"};
}

/// Depths above this are not searched.
inline constexpr std::size_t kMaxDepth = 6;

/// Two words of equal type at a depth, one in the language and one not.
struct Collision {
  std::string in;
  std::string out;
  std::size_t depth = 0;
};

struct LanguageDepth {
  /// Least depth that separates all words up to length n = 1, 2, ..., the empty one included;
  /// none: more than kMaxDepth.
  std::vector<std::optional<std::size_t>> depths;
  /// At the full length: the shortest pair that collides one depth below, or at kMaxDepth. None for
  /// depth 0.
  std::optional<Collision> witness;
  std::vector<std::size_t> classes;  // different words by depth 0, 1, ..., as far as computed
};

/// `progress` gets the share done and may throw. Work and memory grow with the number of words:
/// see type_cost().
LanguageDepth language_depth(const Dfa& dfa, std::size_t length, Logic logic,
                             const std::function<void(double)>& progress = {});

/// Estimates for `letters` letters up to `length`, one thread.
struct TypeCost {
  double words = 0;
  double seconds = 0;
  double bytes = 0;
};
TypeCost type_cost(std::size_t letters, std::size_t length, Logic logic);

/// Whether the end markers of two words have equal types at this depth, evaluated word by word from
/// the definition and nothing else.
bool same_type(const std::string& first, const std::string& second, std::size_t depth, Logic logic);

/// Whether a collision is what it claims to be: one word in, one out, equal types.
bool is_proof(const Dfa& dfa, const Collision& collision, Logic logic);

}  // namespace fathom::lab
