// The syntactic monoid of a regular language: what words do to the states of the minimal automaton.
//
// A language is star-free exactly when its monoid has no nontrivial group (Schuetzenberger 1965):
// when the powers of every element m end in m^(k+1) = m^k.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "lab/hard_attention/automaton.h"

namespace fathom::lab {

struct SyntacticMonoid {
  std::size_t size = 0;           // the identity counts
  std::optional<bool> star_free;  // none: the monoid was not fully enumerated
  bool complete = true;           // false: `size` elements were seen and there are more
};

/// `dfa` must be minimal. Stops when the elements would need more than `limit_bytes`. `look` is
/// called now and then and may throw.
SyntacticMonoid syntactic_monoid(const Dfa& dfa, const std::function<void()>& look = {},
                                 double limit_bytes = 1e9);

}  // namespace fathom::lab
