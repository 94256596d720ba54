// What the surface says: the law of the best depth with its constants, which form the runs prefer,
// the best depth at each size and the crossing of each pair of depths, every one with an interval
// from the same posterior (surface_posterior.h).
//
// a and b are given in both readings of the published law (law_constants.h). Best depths and
// crossings are averaged over the forms by their probability and include the misfit, so they are
// statements about the losses and not about a form.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/interval.h"
#include "fits/depth_law.h"
#include "fits/law_constants.h"
#include "fits/run_point.h"
#include "fits/surface_posterior.h"
#include "fits/transition_fit.h"

namespace fathom::fits {

struct SurfaceForm {
  LawForm form = LawForm::free;
  double delta_aic = 0;    // above the least
  double probability = 0;  // after the runs, all forms equally likely before
  double log_evidence = 0;
  /// Root mean square error in ln loss of the runs of a left-out size, about that size's own level,
  /// mean over sizes: how well the form predicts the order and spacing of depths at a new size.
  double heldout_error = 0;
};

struct BestDepth {
  double params = 0;
  double layers = 0;
  std::optional<double> low;  // 95 %; absent: beyond the depths trained
  std::optional<double> high;
};

struct DepthNoise {
  std::int64_t layers = 0;
  double noise = 0;  // relative deviation of a run's loss
};

/// N_transition(L) ~ T^move.
struct LengthMove {
  double move = 0;
  Interval interval;  // 95 %
  bool moves() const { return interval.low > 0 || interval.high < 0; }
};

/// The law from the runs of about one training length alone.
struct LengthLaw {
  double share = 1;  // of the longest training at each size
  Interval tokens;   // of these runs
  std::size_t runs = 0;
  LawConstants law;
  BestDepth best;  // at the largest size
};

struct SurfaceFit {
  std::size_t runs = 0;
  std::size_t shapes = 0;
  double block_coefficient = 12;
  std::vector<SurfaceForm> forms;
  LawForm preferred = LawForm::free;
  double exponential_odds = 1;  // evidence of the exponential law over the power law's
  LawConstants law;             // L layers are best at width d
  std::optional<TransitionReading> transition_reading;
  double slope = 0;  // of the power law: L* ~ N^slope
  Interval slope_interval;
  std::vector<BestDepth> best_depth;
  std::vector<Transition> crossings;  // every pair
  double noise = 0;                   // of an ordinary depth
  std::vector<DepthNoise> depth_noise;
  double misfit = 0;                      // deviation of what no form explains, posterior mean
  std::optional<LengthMove> length_move;  // where runs differ in length
  std::vector<LengthLaw> lengths;         // shortest first

  /// b is distinguished from 0 and known to better than a half, so that the law is one to plan
  /// with.
  bool fixes_law() const { return law.b_interval.low > 0 && law.b_error <= law.b / 2; }
  const SurfaceForm& form(LawForm form) const { return forms[static_cast<std::size_t>(form)]; }
};

/// The sizes best depths are given for: both ends and 1, 2, 5 times powers of ten between.
std::vector<double> shown_sizes(const SurfaceData& data);

/// The ln L in which best depths are searched: somewhat beyond the depths trained.
Interval depths_searched(const SurfaceData& data);

/// At any size.
BestDepth best_depth_at(const SurfacePosterior& posterior, double params);

SurfaceFit summarise_surface(const SurfacePosterior& posterior);

/// Absent, with the reason, when the runs cannot support a surface. The order of the runs does not
/// matter.
std::optional<SurfaceFit> fit_surface(std::span<const RunPoint> points,
                                      const SurfaceOptions& options, std::string& reason);

}  // namespace fathom::fits
