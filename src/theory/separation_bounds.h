// The separation-rank bounds of arXiv 2006.12467 as printed, in base-3 logarithms.
//
// Theorem 1 (L < log3 d):
//   3^(L-2) (log3(d-H) + a) <= log3 sep <= C log3(d+H),  a = -L + 2 - log3 2,  C = (3^L - 1)/2.
// Theorem 2 (L > log3 d):
//   d L/2 + b1 + b2 <= log3 sep <= 2 d L + c1 + c2,
//   b1 = -L (H/2 + 1), b2 = -d (1 + log3((d-H)/2)/2), c1 = L, c2 = -2 d log3(d / (2 sqrt(2e))) +
//   log3 d.
// The text at hand prints log3 (d/2) sqrt(2 sqrt(2e)) in c2. That cannot be meant: just above
// L = log3 d it would bound a rank, which is at least 1, by less than 1 (3^-127 for d = 1000). With
// the root in the denominator it reads 2 sqrt(2e) = 4.66 or 2 sqrt(2 sqrt(2e)) = 4.32;
// kTheorem2Root takes the first, which gives the larger and so the weaker upper bound.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "theory/structural_rank.h"

namespace fathom::theory {

enum class Regime { depth_efficient, depth_inefficient };
constexpr auto enum_names(Regime) {
  return std::array{"depth-efficient", "depth-inefficient"};
}

/// 2 sqrt(2e): the constant dividing d in c2 of Theorem 2.
extern const double kTheorem2Root;

struct AnalysedNetwork {
  std::int64_t layers = 1;
  std::int64_t width = 1;
  std::int64_t heads = 1;
};

/// ConfigError unless 1 <= layers <= 600 and 1 <= heads <= width. The formulas read d/H as a real
/// number: the paper's own example (d = 1000, H = 16) has heads that do not divide the width.
void validate(const AnalysedNetwork& network);
bool heads_divide_width(const AnalysedNetwork& network);

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

  /// A rank is at least 1, so a lower bound of 1 or less says nothing.
  bool lower_says_something() const { return log3_lower && *log3_lower > 0; }
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
  /// Even the larger reading requires no more than the width that `deep` has.
  bool proves_nothing;
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
  bool shallower;  // than `deep`, which for small networks it need not be
};
ShallowEquivalent shallow_equivalent(const AnalysedNetwork& deep);

/// Everything that is proved about a network, with the widths that `match_depths` would need.
struct BoundsReport {
  AnalysedNetwork network;
  double threshold;  // log3 d
  SeparationBounds bounds;
  std::vector<MatchingWidth> matches;
  std::optional<ShallowEquivalent> shallow;  // in the depth-inefficient regime
  std::vector<std::string> remarks;          // what a reader must know about these numbers
};
BoundsReport bounds_report(const AnalysedNetwork& network,
                           const std::vector<std::int64_t>& match_depths);

}  // namespace fathom::theory
