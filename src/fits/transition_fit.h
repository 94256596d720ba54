// Pairwise transitions: the size from which the deeper of two networks wins at equal N.
//
// On the fitted curves the gain is Delta(x) = ln loss(shallow) - ln loss(deep), x = ln N. Sizes
// where |Delta| exceeds c standard errors are decided; c is the larger of Student's 97.5 % quantile
// and the bootstrap's. The interval of a crossing is the undecided stretch between the last size
// where the shallower wins and the first where the deeper does (Fieller's interval): it covers the
// true crossing with 95 % probability; where it runs off the grid, only a one-sided bound is left
// and is reported instead of a number.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "fits/loss_curves.h"

namespace fathom::fits {

enum class TransitionStatus { crossing, below_grid, above_grid, unclear };
constexpr auto enum_names(TransitionStatus) {
  return std::array{"crossing", "below grid", "above grid", "unclear"};
}

struct Transition {
  std::int64_t shallow = 0;
  std::int64_t deep = 0;
  bool adjacent = false;  // no trained depth lies between
  TransitionStatus status = TransitionStatus::unclear;
  std::optional<double> params;  // only for a crossing
  std::optional<double> low;     // absent: no lower bound
  std::optional<double> high;    // absent: no upper bound
  std::optional<double> width;   // of the deeper network at the crossing
  double log_error = 0;          // standard error of ln N at the crossing
  double grid_low = 0;           // sizes both depths were trained at
  double grid_high = 0;
  std::string note;
};

struct CrossingPlace {
  std::size_t shallow = 0;  // places in CurveFamily::depths()
  std::size_t deep = 0;
  double log_size = 0;
};

/// All pairs of depths, shallow < deep.
std::vector<Transition> find_transitions(const CurveFamily& curves,
                                         const std::vector<CurveFamily::Replicate>& replicates);

/// Where the gain of coefficients near the fitted ones crosses zero, by Newton steps from `place`;
/// absent when it does not within one unit of ln N beyond the grid.
std::optional<double> shifted_crossing(const CurveFamily& curves, const CrossingPlace& place,
                                       const Eigen::VectorXd& coefficients);

}  // namespace fathom::fits
