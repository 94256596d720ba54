#include "fits/design_goals.h"

#include <algorithm>
#include <cmath>

#include "fits/statistics.h"
#include "fits/surface_fit.h"

namespace fathom::fits {
namespace {

GoalState from_draws(const DesignGoal& goal, const std::vector<double>& logarithms,
                     Interval within) {
  WeightedSample sample;
  for (const double value : logarithms) {
    sample.add(value, 1.0 / static_cast<double>(logarithms.size()));
  }
  sample.sort();
  const Interval range = sample.interval();
  GoalState state;
  state.goal = goal;
  const Bounds bounds = bounds_within(range, within);
  if (bounds.low) state.low = std::exp(*bounds.low);
  if (bounds.high) state.high = std::exp(*bounds.high);
  if (state.low && state.high) state.estimate = std::exp(sample.quantile(0.5));
  state.error = state.estimate ? (range.high - range.low) / (2 * kNormal95) : kInfinity;
  // Nearly all of the posterior beyond the sizes or depths: more runs inside will not find it.
  state.out_of_reach = sample.quantile(0.05) == kInfinity || sample.quantile(0.95) == -kInfinity;
  state.decided = state.error <= goal.target;
  return state;
}

GoalState from_constants(const SurfacePosterior& posterior, const DesignGoal& goal) {
  const FormPosterior& form = posterior.form(LawForm::exponential);
  WeightedSample sample;
  for (const WeightedDraw& draw : form.draws) {
    const auto constants =
        form.surface.law().constants(draw.point.data(), posterior.data().block_coefficient);
    sample.add(goal.kind == GoalKind::offset ? constants.a : constants.b, draw.weight);
  }
  sample.sort();
  const Interval range = sample.interval();
  GoalState state;
  state.goal = goal;
  state.estimate = sample.quantile(0.5);
  state.low = range.low;
  state.high = range.high;
  state.error = (range.high - range.low) / (2 * kNormal95);
  state.decided = state.error <= goal.target;
  return state;
}

GoalState from_odds(const SurfacePosterior& posterior, const DesignGoal& goal) {
  GoalState state;
  state.goal = goal;
  const double log_odds = posterior.form(LawForm::exponential).log_evidence -
                          posterior.form(LawForm::power).log_evidence;
  state.estimate = std::exp(log_odds);
  state.error = std::exp(std::fabs(log_odds));
  state.decided = state.error >= goal.target;
  return state;
}

GoalState unseen_goal(const DesignGoal& goal) {
  GoalState unseen;
  unseen.goal = goal;
  unseen.error = kInfinity;
  return unseen;
}

GoalState read_goal(const SurfacePosterior& posterior, const SurfaceDraws& draws,
                    const DesignGoal& goal) {
  const SurfaceData& data = posterior.data();
  if (goal.kind == GoalKind::offset || goal.kind == GoalKind::slope) {
    return from_constants(posterior, goal);
  }
  if (goal.kind == GoalKind::best_depth) {
    const Interval depths = depths_searched(data);
    return from_draws(goal, draws.best_log_depths(std::log(goal.params), depths), depths);
  }
  const auto place = [&](std::int64_t layers) {
    return static_cast<std::size_t>(std::find(data.depths.begin(), data.depths.end(), layers) -
                                    data.depths.begin());
  };
  const std::size_t shallow = place(goal.shallow);
  const std::size_t deep = place(goal.deep);
  if (std::max(shallow, deep) >= data.depths.size()) return unseen_goal(goal);
  return from_draws(goal, draws.crossings(shallow, deep), data.log_size);
}

/// The effective sample size of the draws that a goal is read from.
double draws_behind(const SurfacePosterior& posterior, const DesignGoal& goal) {
  if (goal_form(goal) == LawForm::exponential) {
    return posterior.form(LawForm::exponential).effective_draws;
  }
  double squares = 0;
  for (const FormPosterior& form : posterior.forms()) {
    const double share = posterior.probability(form.surface.law().form());
    squares += share * share / form.effective_draws;
  }
  return 1 / squares;
}

constexpr double kStep = 1e-5;
// A crossing this far from the middle in ln N is not followed; the best depth kAside from it is.
constexpr double kFar = 6;
constexpr double kAside = 2.3;

template <class Value>
void differentiate(Value&& value, const Eigen::VectorXd& at, Eigen::Ref<Eigen::RowVectorXd> row) {
  for (Eigen::Index i = 0; i < at.size(); ++i) {
    Eigen::VectorXd up = at;
    Eigen::VectorXd down = at;
    up[i] += kStep;
    down[i] -= kStep;
    row[i] = (value(up) - value(down)) / (2 * kStep);
  }
}

/// The minimum of k v^2/2 + delta moves by -delta' / k.
void follow_best_depth(const SurfaceColumns& columns, const DepthSurface& surface,
                       const Eigen::VectorXd& parameters, double x,
                       Eigen::Ref<Eigen::RowVectorXd> row) {
  constexpr double kHalfStep = 0.05;
  const double u = surface.best_log_depth(parameters, x);
  differentiate([&](const Eigen::VectorXd& p) { return surface.best_log_depth(p, x); }, parameters,
                row.head(parameters.size()));
  row.tail(columns.misfits()) =
      -(columns.misfit({x, u + kHalfStep, 0}) - columns.misfit({x, u - kHalfStep, 0})) /
      (2 * kHalfStep * surface.curvature(parameters, x));
}

}  // namespace

LawForm goal_form(const DesignGoal& goal) {
  const bool constants = goal.kind == GoalKind::offset || goal.kind == GoalKind::slope;
  return constants ? LawForm::exponential : LawForm::free;
}

GoalState measure_goal(const SurfacePosterior& posterior, const SurfaceDraws& draws,
                       const DesignGoal& goal) {
  // Fewer draws than this have no quantiles: where runs fit no surface, one draw can carry all the
  // weight, and its interval has zero length.
  constexpr double kLeastDraws = 20;
  if (goal.kind == GoalKind::form) return from_odds(posterior, goal);
  const GoalState state = read_goal(posterior, draws, goal);
  const bool told = draws_behind(posterior, goal) >= kLeastDraws;
  return state.decided && !told ? unseen_goal(goal) : state;
}

Eigen::RowVectorXd goal_row(const SurfaceColumns& columns, const DepthSurface& surface,
                            const Eigen::VectorXd& parameters, double block_coefficient,
                            const DesignGoal& goal) {
  const Eigen::Index own = surface.size();
  Eigen::RowVectorXd row = Eigen::RowVectorXd::Zero(own + columns.size());
  const auto by_parameters = [&](auto&& value) { differentiate(value, parameters, row.head(own)); };
  switch (goal.kind) {
    case GoalKind::offset:
    case GoalKind::slope:
      by_parameters([&](const Eigen::VectorXd& p) {
        const auto constants = surface.law().constants(p.data(), block_coefficient);
        return goal.kind == GoalKind::offset ? constants.a : constants.b;
      });
      break;
    case GoalKind::best_depth:
      follow_best_depth(columns, surface, parameters, std::log(goal.params), row);
      break;
    case GoalKind::crossing: {
      const auto shallow = static_cast<double>(goal.shallow);
      const auto deep = static_cast<double>(goal.deep);
      const double x = surface.crossing(parameters, shallow, deep);
      const double centre = surface.law().centre();
      if (std::fabs(x - centre) > kFar) {
        // Beyond all sizes, as far as is known: what is missing is the best depth on that side.
        follow_best_depth(columns, surface, parameters, centre + std::copysign(kAside, x), row);
        break;
      }
      by_parameters([&](const Eigen::VectorXd& p) { return surface.crossing(p, shallow, deep); });
      // The zero of the gain moves by -(change of the gain) / (its slope).
      const auto gain = [&](double at) {
        return surface.penalty(parameters, {at, std::log(shallow), 0}) -
               surface.penalty(parameters, {at, std::log(deep), 0});
      };
      const double slope = (gain(x + kStep) - gain(x - kStep)) / (2 * kStep);
      row.tail(columns.misfits()) =
          -(columns.misfit({x, std::log(shallow), 0}) - columns.misfit({x, std::log(deep), 0})) /
          slope;
      break;
    }
    case GoalKind::form:
      row[2] = 1;  // the bend of the free form
      break;
  }
  return row;
}

double target_error(const Eigen::VectorXd& parameters, const DesignGoal& goal) {
  if (goal.kind != GoalKind::form) return goal.target;
  // The forms' bends differ by s (1 - s); the odds between two points t standard errors apart are
  // e^(t^2 / 2).
  const double slope = std::exp(parameters[1]);
  const double apart = std::max(0.02, slope * std::fabs(1 - slope));
  return apart / std::sqrt(2 * std::log(std::max(1.5, goal.target)));
}

}  // namespace fathom::fits
