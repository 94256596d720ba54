// The exponential law ln d = a + b L through measured transitions, as in Levine et al. 2020 (arXiv
// 2006.12467): d is the width at which depth L starts to pay.
//
// Generalised least squares: the transitions of neighbouring pairs share curves, so their errors
// are correlated and the covariance C of the ln d is propagated from the curves,
//   (a, b) = (X' C^-1 X)^-1 X' C^-1 y,  chi2 = r' C^-1 r.
// Errors are scaled by sqrt(chi2 / dof) when that exceeds one. The paper leaves two readings open:
// the transition of (l, m) belongs to the deeper depth m, or to the midpoint (l + m) / 2.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fits/transition_fit.h"
#include "laws/law.h"

namespace fathom::fits {

enum class Reading { deeper, midpoint };
constexpr auto enum_names(Reading) {
  return std::array{"deeper", "midpoint"};
}

struct TransitionPoint {
  double layers = 0;
  double width = 0;
  double log_error = 0;  // of ln d
};

struct ExponentialFit {
  Reading reading = Reading::deeper;
  double a = 0;
  double b = 0;
  double a_error = 0;
  double b_error = 0;
  double correlation = 0;
  Interval a_interval;  // 95 %
  Interval b_interval;
  double chi2 = 0;
  int degrees_of_freedom = 0;
  std::vector<TransitionPoint> points;
  // Against the published fit (laws::LevineFit): differences in joint standard errors, and the
  // chi-square of these points about the published line (nothing fitted).
  double a_score = 0;
  double b_score = 0;
  double published_chi2 = 0;

  double width_at(double layers) const;
};

/// Adjacent pairs with a crossing; absent, with the reason, when fewer than two.
std::optional<ExponentialFit> fit_exponential(const CurveFamily& curves,
                                              const std::vector<Transition>& transitions,
                                              const std::vector<CurveFamily::Replicate>& replicates,
                                              Reading reading, std::string& reason);

}  // namespace fathom::fits
