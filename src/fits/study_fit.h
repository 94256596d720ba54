// What a set of finished runs says about depth and width, and what it cannot say.
//
//   runs -> loss curves per depth -> pairwise transitions -> ln d = a + b L
//        \-> surface in size and depth: best depths, crossings, the law and its form
//        \-> joint law in width, depth, parameters and tokens
//
// Whatever the runs cannot determine is absent, and the reason is in `warnings`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fits/exponential_fit.h"
#include "fits/joint_fit.h"
#include "fits/run_point.h"
#include "fits/surface_fit.h"
#include "fits/transition_fit.h"

namespace fathom::fits {

struct FitOptions {
  std::size_t replicates = 1000;       // bootstrap, curves and transitions
  std::size_t joint_replicates = 200;  // bootstrap, joint law
  std::uint64_t seed = 1;
  JointOptions joint;
  SurfaceOptions surface{4000, 1};  // enough that their seed moves b's error by only 3 %
  std::size_t most_runs = 1200;     // more are reduced to this many (condensed_runs.h)
  double holdout_tokens_above = 0;  // left-out runs of fewer tokens are not counted
};

/// How the compared runs' tokens follow their size: the same for all, or this many per parameter.
struct TokenRule {
  double count = 20;
  bool per_parameter = true;
  double at(double params) const { return per_parameter ? count * params : count; }
};

/// A depth's curve, for tables and charts.
struct CurvePoint {
  double params = 0;
  double loss = 0;
  double low = 0;  // 95 % band of the curve
  double high = 0;
};
struct DepthCurve {
  std::int64_t layers = 0;
  std::vector<CurvePoint> points;
};

struct StudyFit {
  std::size_t runs = 0;
  std::size_t runs_compared = 0;  // of these, the ones the transitions use
  Interval params;
  Interval tokens;
  Interval layers;
  Interval width;
  double block_coefficient = 12;  // N = c L D^2, median over runs
  TokenRule token_rule;           // of the runs compared
  double noise = 0;               // relative scatter of losses about the curves
  std::vector<DepthCurve> curves;
  std::vector<Transition> transitions;
  std::optional<ExponentialFit> law;           // carried by the deeper depth
  std::optional<ExponentialFit> law_midpoint;  // carried by the midpoint
  std::optional<JointFit> joint;               // the preferred form
  std::vector<JointFit> forms;                 // every form that was fitted
  std::optional<SurfaceFit> surface;           // all runs in one likelihood
  std::vector<std::string> warnings;
  std::vector<std::string> answer;  // fits/study_verdict.h

  /// The runs determine something to plan with.
  bool has_law() const { return law || joint || (surface && surface->fixes_law()); }
};

/// Never throws for a poor design: that is what warnings are for. ConfigError when a run is invalid
/// (non-positive numbers).
StudyFit fit_study(std::span<const RunPoint> points, const FitOptions& options = {});

}  // namespace fathom::fits
