// Which runs to make next: from the runs so far and the goals, the batch with the largest expected
// drop of the goals' errors for its cost.
//
// A pure function of its arguments: the same records give the same batch, so a study that was
// stopped continues as if it had not been. With too few runs for a surface, a first round spreads
// depths around the published best depth over the smaller sizes. From then on the surface is fitted
// (surface_posterior.h), each goal's error is read from the posterior, and the way to the target
// errors is planned (design_plan.h) with linearised surfaces (linearised_mixture.h). From that plan
// the trajectories (shape, next seed, all training lengths) are taken first that have the largest
//   sum over undecided goals of 2 ln(error now / predicted error with it), over its cost.
// A goal is decided when its error is at most the target. A goal is out of reach when even all
// allowed shapes without noise would leave a larger error (what remains is misfit), or when the
// answer lies beyond the allowed sizes or depths; then its one-sided bound is reported, with the
// predicted cost of deciding it with wider limits.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "fits/design_candidates.h"
#include "fits/surface_posterior.h"

namespace fathom::fits {

enum class GoalKind {
  offset,      // a of ln d = a + b L
  slope,       // b
  crossing,    // ln N from which `deep` layers beat `shallow`
  best_depth,  // ln of the best depth at `params`
  form         // exponential or power law: the odds
};
constexpr auto enum_names(GoalKind) {
  return std::array{"a", "b", "crossing", "best-depth", "form"};
}

struct DesignGoal {
  GoalKind kind = GoalKind::slope;
  double target = 0;  // standard error; for the form the odds, either way
  std::int64_t shallow = 0;
  std::int64_t deep = 0;
  double params = 0;
};
/// "b", "12 over 6", "best depth at 10.0M".
std::string goal_name(const DesignGoal& goal);

struct DesignSpec {
  std::vector<DesignGoal> goals;
  CandidateLimits limits;
  /// Training lengths of a size in tokens, ascending; a trajectory is trained to all.
  std::function<std::vector<double>(double params)> lengths;
  /// Cost of one trajectory in any unit, above zero.
  std::function<double(std::int64_t layers, std::int64_t width, const std::vector<double>& lengths)>
      cost;
  double budget = 0;  // of the whole study, runs so far included
  double lost = 0;    // of it, spent on runs without a loss
  /// Shapes (layers, width) that are not asked for again: a run of theirs diverged.
  std::set<std::pair<std::int64_t, std::int64_t>> left_out;
  double batch_share = 0.1;  // of the budget, for one round
  SurfaceOptions surface;
};

struct DesignRun {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::uint64_t seed = 0;
  std::vector<double> lengths;
  double cost = 0;
};

struct GoalState {
  DesignGoal goal;
  std::optional<double> estimate;  // of a, b, N, L or the odds of the exponential law
  std::optional<double> low;       // 95 %, in the same unit; absent: no bound
  std::optional<double> high;
  double error = 0;     // standard error as DesignGoal::target counts it; infinite: no estimate
  double expected = 0;  // after the batch
  bool decided = false;
  bool out_of_reach = false;
};

enum class DesignStage { first_round, undecided, decided, out_of_reach, budget_spent };
constexpr auto enum_names(DesignStage) {
  return std::array{"first round", "undecided", "decided", "out of reach", "budget spent"};
}

struct DesignStep {
  DesignStage stage = DesignStage::undecided;
  std::vector<GoalState> goals;
  std::vector<DesignRun> batch;  // empty at an end
  double batch_cost = 0;
  double spent = 0;  // on the runs so far
  /// Cost from now until all goals are decided, as predicted; absent when no number of allowed runs
  /// would.
  std::optional<double> cost_to_decide;
};

/// ConfigError when the spec is contradictory: no goals, no candidate shapes, a budget that buys
/// no run, a goal outside the limits.
void require_consistent(const DesignSpec& spec);

/// ConfigError as above.
DesignStep next_batch(std::span<const RunPoint> runs, const DesignSpec& spec);

}  // namespace fathom::fits
