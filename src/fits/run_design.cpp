#include "fits/run_design.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/units.h"
#include "fits/design_goals.h"
#include "fits/design_plan.h"
#include "fits/design_start.h"
#include "fits/surface_draws.h"

namespace fathom::fits {
namespace {

constexpr std::size_t kDesignDraws = 1000;
// Planning gives up at this many times the budget.
constexpr double kFarCost = 100;
// A round costs at most this share of what was spent before it, because early choices rest on
// little evidence, and at most half of what is predicted to be missing, so that a design does not
// overshoot its end; but never so little that there are more rounds than they are worth.
constexpr double kGrowth = 0.1;
constexpr double kApproach = 0.5;
constexpr double kLeastGrowth = 0.03;

std::vector<Candidate> list_candidates(const DesignSpec& spec, const CandidateLimits& limits) {
  std::vector<Candidate> candidates;
  for (const CandidateShape& shape : candidate_shapes(limits)) {
    if (spec.left_out.contains({shape.layers, shape.width})) continue;
    Candidate candidate{shape, spec.lengths(shape.params), 0, {}};
    candidate.cost = spec.cost(shape.layers, shape.width, candidate.lengths);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

void check_goal(const DesignGoal& goal, const CandidateLimits& limits) {
  const std::string name = goal_name(goal);
  if (!(goal.target > 0)) {
    throw ConfigError(fmt::format("design: the target error of {} is not above zero", name));
  }
  if (goal.kind == GoalKind::best_depth &&
      (goal.params < limits.smallest || goal.params > limits.largest)) {
    throw ConfigError(fmt::format("design: {} lies outside the design's sizes, {} to {}", name,
                                  format_count(limits.smallest), format_count(limits.largest)));
  }
  if (goal.kind != GoalKind::crossing) return;
  if (goal.shallow >= goal.deep) {
    throw ConfigError(fmt::format("design: {}: name the deeper network first", name));
  }
  for (const std::int64_t layers : {goal.shallow, goal.deep}) {
    if (std::find(limits.depths.begin(), limits.depths.end(), layers) == limits.depths.end()) {
      throw ConfigError(
          fmt::format("design: {} needs {} layers, which the design does not allow", name, layers));
    }
  }
}

void check(const DesignSpec& spec, const std::vector<Candidate>& candidates) {
  if (spec.goals.empty()) throw ConfigError("design: no goal; name one (a, b, a crossing)");
  for (const DesignGoal& goal : spec.goals) check_goal(goal, spec.limits);
  if (candidates.size() < kFirstShapes) {
    throw ConfigError(fmt::format(
        "design: only {} shapes fit its depths and sizes, and a law needs {}; allow more depths, a "
        "wider range of sizes, a smaller head_size or min_width",
        candidates.size(), kFirstShapes));
  }
  double cheapest = 1e300;
  for (const Candidate& c : candidates) cheapest = std::min(cheapest, c.cost);
  if (!(spec.budget >= cheapest)) {
    throw ConfigError(fmt::format("design: a budget of {} buys no run: the cheapest costs {}",
                                  format_significant(spec.budget, 3),
                                  format_significant(cheapest, 3)));
  }
}

/// What the runs so far cost: each trajectory by its lengths.
double cost_so_far(std::span<const RunPoint> runs, const DesignSpec& spec) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::uint64_t>, std::set<double>> trajectories;
  for (const RunPoint& run : runs) {
    trajectories[{run.layers, run.width, run.seed}].insert(run.tokens);
  }
  double sum = spec.lost;
  for (const auto& [key, lengths] : trajectories) {
    sum += spec.cost(std::get<0>(key), std::get<1>(key), {lengths.begin(), lengths.end()});
  }
  return sum;
}

/// What it would cost to decide with sizes up to where the crossing is expected.
std::optional<double> cost_with_wider_limits(const SurfacePosterior& posterior,
                                             const DesignSpec& spec,
                                             const std::vector<GoalState>& states) {
  CandidateLimits wider = spec.limits;
  for (const GoalState& state : states) {
    if (!state.out_of_reach || state.goal.kind != GoalKind::crossing) continue;
    const FormPosterior& form = posterior.form(LawForm::free);
    WeightedSample sample;
    for (const WeightedDraw& draw : form.draws) {
      sample.add(form.surface.crossing(draw.point, static_cast<double>(state.goal.shallow),
                                       static_cast<double>(state.goal.deep)),
                 draw.weight);
    }
    sample.sort();
    const double expected = std::exp(std::clamp(sample.quantile(0.5), 0.0, 35.0));
    wider.largest = std::max(wider.largest, std::min(2 * expected, 1000 * wider.largest));
    wider.smallest = std::min(wider.smallest, std::max(expected / 2, wider.smallest / 100));
  }
  std::vector<Candidate> candidates = list_candidates(spec, wider);
  const GoalForecast forecast = GoalForecast::cautious(posterior, candidates, states);
  const auto plan = plan_ahead(forecast, list_choices(candidates), 0, kFarCost * spec.budget);
  return plan ? std::optional(plan->cost()) : std::nullopt;
}

/// Whether the runs nearly reach the ends of the allowed sizes and depths.
bool covers(const SurfaceData& data, const CandidateLimits& limits) {
  constexpr double kNearly = 0.4;  // of ln N
  return data.log_size.low < std::log(limits.smallest) + kNearly &&
         data.log_size.high > std::log(limits.largest) - kNearly &&
         data.depths.front() <= limits.depths.front() && data.depths.back() >= limits.depths.back();
}

std::vector<GoalState> unseen_goals(const DesignSpec& spec) {
  std::vector<GoalState> goals;
  for (const DesignGoal& goal : spec.goals) {
    GoalState state;
    state.goal = goal;
    state.error = state.expected = std::numeric_limits<double>::infinity();
    goals.push_back(state);
  }
  return goals;
}

/// Where every goal stands, and whether it can be reached.
void measure_goals(const SurfacePosterior& posterior, const DesignSpec& spec,
                   std::vector<Candidate>& candidates, DesignStep& step) {
  const SurfaceDraws draws(posterior, kDesignDraws, spec.surface.seed);
  for (const DesignGoal& goal : spec.goals) {
    step.goals.push_back(measure_goal(posterior, draws, goal));
    step.goals.back().expected = step.goals.back().error;
    // What lies beyond the runs may still lie within the limits.
    step.goals.back().out_of_reach &= covers(posterior.data(), spec.limits);
  }
  // Misfit is estimated better as runs come in: it may end a study only after half the budget.
  if (step.spent <= spec.budget / 2) return;
  const GoalForecast best =
      GoalForecast::hopeful(posterior, candidates, step.goals).without_noise(candidates);
  for (std::size_t g = 0; g < step.goals.size(); ++g) {
    if (!step.goals[g].decided) step.goals[g].out_of_reach |= best.need(g) > 1;
  }
}

double round_cost(const DesignSpec& spec, const DesignStep& step, double money) {
  const double most = std::min({money, spec.batch_share * spec.budget, kGrowth * step.spent});
  if (!step.cost_to_decide) return most;
  return std::min(most, std::max(kApproach * *step.cost_to_decide, kLeastGrowth * step.spent));
}

/// The part of the planned way to the end that fits the round, best gain for its cost first; where
/// no end is in sight, whatever gains most for its cost.
void choose_batch(const SurfacePosterior& posterior, const DesignSpec& spec,
                  std::vector<Candidate>& candidates, double money, Seeds& seeds,
                  DesignStep& step) {
  std::vector<GoalState> followed = step.goals;
  for (GoalState& goal : followed) goal.decided |= goal.out_of_reach;
  GoalForecast forecast = GoalForecast::cautious(posterior, candidates, followed);
  const std::vector<Choice> choices = list_choices(candidates);
  std::optional<DesignPlan> plan =
      plan_ahead(forecast, choices, step.spent, kFarCost * spec.budget);
  if (plan) step.cost_to_decide = plan->cost();
  const double round = round_cost(spec, step, money);
  while (!forecast.all_decided() && step.batch_cost < round) {
    const double most = step.batch.empty() ? money : round - step.batch_cost;
    const std::vector<Choice> open = plan ? plan->open(choices) : choices;
    const Choice* next = pick(forecast, open, most);
    // Too little money for the way to the end: take whatever it buys.
    if (next == nullptr && step.batch.empty()) next = pick(forecast, choices, most);
    if (next == nullptr) break;
    for (const Candidate* candidate : *next) {
      ask_for(*candidate, seeds, step);
      forecast.add(*candidate);
      if (plan) plan->take(*candidate);
    }
  }
  for (std::size_t g = 0; g < step.goals.size(); ++g) {
    const bool predicted = step.goals[g].goal.kind != GoalKind::form && !followed[g].decided;
    if (predicted) step.goals[g].expected = forecast.expected_error(g);
  }
}

}  // namespace

std::string goal_name(const DesignGoal& goal) {
  switch (goal.kind) {
    case GoalKind::offset:
      return "a";
    case GoalKind::slope:
      return "b";
    case GoalKind::crossing:
      return fmt::format("{} over {}", goal.deep, goal.shallow);
    case GoalKind::best_depth:
      return fmt::format("best depth at {}", format_count(goal.params));
    case GoalKind::form:
      return "exponential or power law";
  }
  return "";
}

void require_consistent(const DesignSpec& spec) {
  check(spec, list_candidates(spec, spec.limits));
}

DesignStep next_batch(std::span<const RunPoint> runs, const DesignSpec& spec) {
  std::vector<Candidate> candidates = list_candidates(spec, spec.limits);
  check(spec, candidates);
  DesignStep step;
  step.spent = cost_so_far(runs, spec);
  const double money = spec.budget - step.spent;
  Seeds seeds(runs);
  std::string reason;
  std::optional<SurfacePosterior> posterior;
  if (!runs.empty()) posterior = SurfacePosterior::fit(runs, spec.surface, reason);
  if (!posterior) {
    step.goals = unseen_goals(spec);
    step.stage = DesignStage::first_round;
    first_round(spec, candidates, seeds, money, step);
    if (step.batch.empty()) step.stage = DesignStage::budget_spent;
    return step;
  }
  measure_goals(*posterior, spec, candidates, step);
  const auto is_decided = [](const GoalState& goal) { return goal.decided; };
  const auto is_over = [](const GoalState& goal) { return goal.decided || goal.out_of_reach; };
  if (std::all_of(step.goals.begin(), step.goals.end(), is_decided)) {
    step.stage = DesignStage::decided;
    step.cost_to_decide = 0;
  } else if (std::all_of(step.goals.begin(), step.goals.end(), is_over)) {
    step.stage = DesignStage::out_of_reach;
    step.cost_to_decide = cost_with_wider_limits(*posterior, spec, step.goals);
  } else {
    choose_batch(*posterior, spec, candidates, money, seeds, step);
    if (step.batch.empty()) step.stage = DesignStage::budget_spent;
  }
  return step;
}

}  // namespace fathom::fits
