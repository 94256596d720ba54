// Regular expressions over a small alphabet, to a minimal automaton.
//
//   a          a letter            \*      an operator sign as a letter
//   .          any letter          [ab]    one of these, [a-c] a range, [^ab] any other
//   xy         one after another   x|y     either
//   x* x+ x?   repeated            x{3}  x{2,}  x{1,4}
//   ( )        grouping; () is the empty word, [] no word at all
//
// A whole word must match. Repetition operators combine: a+? is (a+)?, the empty word included.
// Parser, Thompson's automaton, subset construction, minimal automaton.
#pragma once

#include <string>

#include "lab/hard_attention/automaton.h"

namespace fathom::lab {

/// One-line ConfigError, with the place for what is malformed and with the size for what would grow
/// too large. An empty `alphabet`: the letters that the expression names, sorted.
Dfa compile_expression(const std::string& expression, const std::string& alphabet);

/// The expression of STAIR_k over {a, b, c}: words that contain k a's in a row once all c's are
/// deleted (arXiv 2310.13897).
std::string stair_expression(std::size_t k);

}  // namespace fathom::lab
