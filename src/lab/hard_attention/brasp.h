// B-RASP (arXiv 2310.13897): programs of Boolean vectors over the positions of a word, the language
// between temporal logic and masked hard-attention networks.
//
// The word is followed by one end marker. A program starts from Q_a(i), "position i holds letter
// a" ('$' for the end marker). A statement defines a new vector either position by position from
// older ones, or by an attention step: among the positions j < i (the mask) that satisfy the score
// S(i, j) it takes the rightmost and returns V(i, j), or D(i) when there is none. The program's
// answer is its last vector at the end marker. Its depth is the longest chain of attention steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::lab {

/// A Boolean formula over vectors at i and, in scores and values, at j.
struct BooleanFormula {
  enum class Kind : std::uint8_t {
    constant,
    vector_i,
    vector_j,
    negation,
    conjunction,
    disjunction
  };
  Kind kind = Kind::constant;
  bool value = false;      // constant
  std::size_t vector = 0;  // vector_i, vector_j: which
  std::vector<BooleanFormula> parts;

  bool evaluate(const std::vector<bool>& at_i, const std::vector<bool>& at_j) const;
  std::string text(const std::vector<std::string>& names) const;
};

BooleanFormula constant(bool value);
BooleanFormula at_i(std::size_t vector);
BooleanFormula at_j(std::size_t vector);
BooleanFormula negation(BooleanFormula part);
BooleanFormula conjunction(BooleanFormula first, BooleanFormula second);

struct BraspStatement {
  std::string name;
  bool attention = false;
  BooleanFormula value;      // position by position: of i; attention: V(i, j)
  BooleanFormula score;      // attention: S(i, j)
  BooleanFormula otherwise;  // attention: D(i)
};

struct BraspProgram {
  std::string alphabet;                    // vectors 0 .. letters: Q of each letter, then of '$'
  std::vector<BraspStatement> statements;  // vectors letters + 1, ...

  std::vector<std::string> names() const;
  /// Attention steps on the longest chain that leads to each vector.
  std::vector<std::size_t> depths() const;
  std::size_t depth() const { return depths().back(); }
  std::string text() const;
};

/// The last vector at the end marker.
bool run_program(const BraspProgram& program, std::string_view word);

/// STAIR_k in depth k: runs of a's over c's, one step longer with every attention step.
BraspProgram stair_program(std::size_t k);

}  // namespace fathom::lab
