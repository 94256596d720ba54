// The transition law of Levine et al. 2020, "The Depth-to-Width Interplay in Self-Attention"
// (arXiv 2006.12467): at depth L, depth pays from width d_x(L) on,
//
//   ln d_x(L) = a + b L,
//
// so a network of N = 12 L d^2 parameters sits on the transition at N = 12 L e^(2a) e^(2bL), whose
// inverse is L = W(2b N e^(-2a) / 12) / (2b) with Lambert's W.
#pragma once

#include "laws/law.h"

namespace fathom::laws {

/// The published fit; everything that needs one of its numbers reads this struct.
///
/// a and b are quoted by BloombergGPT (arXiv 2303.17564), which chose its shape with them, and in
/// BigScience's math/README.md (github.com/bigscience-workshop/bigscience). The errors and the
/// sizes trained are not confirmed: the version of the paper at hand is an earlier one without the
/// fit, and no source we could read repeats them. The correlation of a and b was not found either,
/// so it is an option of the planner.
struct LevineFit {
  double a = 5.039;
  double b = 0.0555;
  double a_error = 0.030;
  double b_error = 0.0013;
  double correlation = 0;
  Interval parameters{1e6, 6e8};
  Interval layers{6, 48};  // every size was trained for the same steps: there is no token axis

  /// "5.039 + 0.0555·L".
  std::string formula() const;
};

class LevineLaw : public Law {
 public:
  static constexpr const char* kName = "levine2020";

  explicit LevineLaw(LevineFit fit = {});

  const LawInfo& info() const override { return info_; }
  Optimum optimum(const Budget& budget) const override;

  /// d_x(L).
  double transition_width(double layers) const;
  /// One-sigma error of ln d_x(L).
  double log_width_error(double layers) const;
  /// N_transition(L) = 12 L d_x(L)^2.
  double transition_parameters(double layers) const;
  /// The inverse: the depth whose transition lies at N = 12 L d^2.
  double depth_for(double parameters) const;
  /// The depth at which this width is the transition width (may be negative for narrow networks).
  double depth_at_width(double width) const;

 private:
  LevineFit fit_;
  LawInfo info_;
};

}  // namespace fathom::laws
