// The separation-rank bounds of arXiv 2006.12467 as printed, in base-3 logarithms.
//
// Theorem 1 (L < log3 d):
//   3^(L-2) (log3(d-H) + a) <= log3 sep <= C log3(d+H),  a = -L + 2 - log3 2,  C = (3^L - 1)/2.
// Theorem 2 (L > log3 d):
//   d L/2 + b1 + b2 <= log3 sep <= 2 d L + c1 + c2,
//   b1 = -L (H/2 + 1), b2 = -d (1 + log3((d-H)/2)/2), c1 = L, c2 = -2 d log3(d / (2 sqrt(2e))) +
//   log3 d.
// The root in c2 is hard to read in the available text; kTheorem2Root holds the reading taken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "theory/structural_rank.h"

namespace fathom::theory {

enum class Regime { depth_efficient, depth_inefficient };
std::string to_string(Regime regime);

/// 2 sqrt(2e): the constant dividing d in c2 of Theorem 2.
extern const double kTheorem2Root;

struct AnalysedNetwork {
  std::int64_t layers = 1;
  std::int64_t width = 1;
  std::int64_t heads = 1;
};

/// ConfigError unless 1 <= layers <= 600 and 1 <= heads <= width. The formulas do not need H to
/// divide d, and the paper's own example (d = 1000, H = 16) does not.
void validate(const AnalysedNetwork& network);

/// log3 d, the depth at which the regime changes.
double depth_threshold(std::int64_t width);
Regime regime(const AnalysedNetwork& network);

struct SeparationBounds {
  Regime regime;
  int theorem;                       // 1 or 2
  std::optional<double> log3_lower;  // absent when the printed formula is undefined (d = H)
  double log3_upper;
  SaturatedRank structural;  // R_max, proved
  /// R_max exceeds the printed upper bound: the two conflict if the rank reaches R_max.
  bool printed_upper_below_structural;
};
SeparationBounds separation_bounds(const AnalysedNetwork& network);

/// log3 of Theorem 1's lower bound (n/k)^k and of its multiset reading ((n+k-1)/k)^k,
/// n = (d-H)/2, k = 3^(L-2). Absent for d = H.
std::optional<double> log3_lower_printed(const AnalysedNetwork& network);
std::optional<double> log3_lower_multiset(const AnalysedNetwork& network);

/// Corollary 1: the width below which a network of `layers` layers cannot have the separation rank
/// that `deep` has almost everywhere: C(layers) log3(w + H) = lower(deep). In log10, because the
/// widths overflow.
struct MatchingWidth {
  std::int64_t layers;
  std::optional<double> log10_width_printed;
  std::optional<double> log10_width_multiset;
};
MatchingWidth matching_width(const AnalysedNetwork& deep, std::int64_t shallow_layers);

/// Corollary 2 (L > log3 d): depth beta1 L + beta2 and width 3^beta2 d suffice to surpass the
/// separation rank of `deep`. The paper gives beta2 only up to a constant; this is the smallest
/// beta2 for which Theorem 1's printed lower bound exceeds Theorem 2's printed upper bound.
struct ShallowEquivalent {
  double beta1;
  double beta2;
  double layers;
  double log10_width;
};
ShallowEquivalent shallow_equivalent(const AnalysedNetwork& deep);

}  // namespace fathom::theory
