#include "study/design_text.h"

#include <fmt/format.h>

#include <cmath>

#include "core/json_text.h"
#include "core/units.h"
#include "study/rounds.h"

namespace fathom::study {
namespace {

using fits::DesignStage;
using fits::GoalKind;
using fits::GoalState;
using Json = nlohmann::ordered_json;

/// A goal's value for reading: N as a count, depths and constants as numbers.
std::string value_text(const GoalState& goal, double value) {
  switch (goal.goal.kind) {
    case GoalKind::crossing:
      return format_count(value);
    case GoalKind::best_depth:
      return fmt::format("{:.1f} layers", value);
    case GoalKind::offset:
      return fmt::format("{:.2f}", value);
    case GoalKind::slope:
      return fmt::format("{:.4f}", value);
    case GoalKind::form:
      return fmt::format("{:.3g} to 1", value);
  }
  return "";
}

/// How far a goal is from its target: above 1 it is not decided.
double need_of(const GoalState& goal) {
  const bool odds = goal.goal.kind == GoalKind::form;
  return odds ? goal.goal.target / std::max(goal.error, 1e-9) : goal.error / goal.goal.target;
}

std::string state_text(const GoalState& goal) {
  if (goal.decided) return "decided";
  return goal.out_of_reach ? "out of reach" : "not decided";
}

std::string form_text(const GoalState& goal) {
  const double odds = goal.estimate.value_or(1);
  return fmt::format("odds of the {} {:.3g} to 1, target {:.3g} to 1: {}",
                     odds >= 1 ? "exponential law" : "power law", std::max(odds, 1 / odds),
                     goal.goal.target, state_text(goal));
}

std::string bound_text(const GoalState& goal) {
  if (goal.low && goal.high) {
    return fmt::format(" (95 %: {} to {})", value_text(goal, *goal.low),
                       value_text(goal, *goal.high));
  }
  if (goal.low) return fmt::format(" (95 %: above {})", value_text(goal, *goal.low));
  if (goal.high) return fmt::format(" (95 %: below {})", value_text(goal, *goal.high));
  return "";
}

/// The error next to its target. Those of crossings and best depths are of logarithms.
std::string error_text(const GoalState& goal) {
  const double target = goal.goal.target;
  std::string name = "error";
  if (goal.goal.kind == GoalKind::form) return fmt::format("target odds {:.3g} to 1", target);
  if (goal.goal.kind == GoalKind::crossing) name += " of ln N";
  if (goal.goal.kind == GoalKind::best_depth) name += " of ln L";
  if (!std::isfinite(goal.error)) return fmt::format("target {} {:.3g}", name, target);
  return fmt::format("{} {:.3g}, target {:.3g}", name, goal.error, target);
}

Json goal_json(const GoalState& goal) {
  return {{"goal", goal_name(goal.goal)},
          {"target", goal.goal.target},
          {"estimate", number_or_null(goal.estimate)},
          {"low", number_or_null(goal.low)},
          {"high", number_or_null(goal.high)},
          {"error", number_or_null(goal.error)},
          {"expected_error", number_or_null(goal.expected)},
          {"decided", goal.decided},
          {"out_of_reach", goal.out_of_reach}};
}

/// Where the study stands, and what it would take to finish it.
std::string stage_text(const DesignProgress& progress, const DesignRules& rules) {
  const fits::DesignStep& step = progress.step;
  const std::string to_decide =
      step.cost_to_decide ? fmt::format("; deciding the rest would cost about {} more",
                                        cost_text(*step.cost_to_decide, rules.unit))
                          : "; no number of runs within the limits is expected to decide the rest";
  switch (step.stage) {
    case DesignStage::decided:
      return "all goals are decided";
    case DesignStage::budget_spent:
      return "the allowed cost is spent" + to_decide;
    case DesignStage::out_of_reach:
      return "the remaining goals cannot be reached with these depths and sizes" +
             (step.cost_to_decide ? fmt::format("; with wider limits it would cost about {}",
                                                cost_text(*step.cost_to_decide, rules.unit))
                                  : std::string("; the bound is the answer"));
    case DesignStage::first_round:
      return "no round is complete yet";
    case DesignStage::undecided:
      return step.cost_to_decide
                 ? fmt::format("about {} more until all goals are decided, by the current forecast",
                               cost_text(*step.cost_to_decide, rules.unit))
                 : "more rounds are needed to estimate the remaining cost";
  }
  return "";
}

}  // namespace

std::string cost_text(double cost, CostUnit unit) {
  switch (unit) {
    case CostUnit::seconds:
      return format_seconds(cost);
    case CostUnit::flops:
      return fmt::format("{:.2e} FLOPs", cost);
    case CostUnit::runs:
      return fmt::format("{:.0f} runs", cost);
  }
  return "";
}

std::string goal_text(const GoalState& goal) {
  if (goal.goal.kind == GoalKind::form && goal.estimate) return form_text(goal);
  const std::string estimate = goal.estimate ? value_text(goal, *goal.estimate) : "not known yet";
  return fmt::format("{}: {}{}; {}: {}", goal_name(goal.goal), estimate, bound_text(goal),
                     error_text(goal), state_text(goal));
}

std::vector<std::string> design_lines(const DesignProgress& progress, const DesignRules& rules) {
  std::vector<std::string> lines;
  for (const GoalState& goal : progress.step.goals) lines.push_back(goal_text(goal));
  if (progress.rounds == 0) {
    lines.push_back(
        fmt::format("no round started yet; up to {} allowed", cost_text(rules.budget, rules.unit)));
  } else {
    lines.push_back(fmt::format("{} of {} rounds complete, {} spent of {}; {}", progress.complete,
                                progress.rounds, cost_text(progress.step.spent, rules.unit),
                                cost_text(rules.budget, rules.unit), stage_text(progress, rules)));
  }
  const bool open = progress.complete < progress.rounds;
  if (open || !progress.step.batch.empty()) {
    const std::string round = progress.rounds == 0 ? "the first round" : "the next round";
    lines.push_back(
        fmt::format("{}: {}{}", open ? "the rest of this round" : round,
                    cost_text(progress.next_cost, rules.unit),
                    std::isfinite(progress.next_seconds) && rules.unit != CostUnit::seconds
                        ? fmt::format(", about {}", format_seconds(progress.next_seconds))
                        : ""));
  }
  return lines;
}

Json design_json(const DesignProgress& progress, const DesignRules& rules) {
  const GoalState* worst = &progress.step.goals.front();
  for (const GoalState& goal : progress.step.goals) {
    if (need_of(goal) > need_of(*worst)) worst = &goal;
  }
  Json json{{"goal", goal_name(worst->goal)},
            {"target", worst->goal.target},
            {"error", number_or_null(worst->error)},
            {"decided", progress.step.stage == DesignStage::decided},
            {"next_cost_seconds", number_or_null(progress.next_seconds)},
            {"next_cost", progress.next_cost},
            {"unit", name_of(rules.unit)},
            {"budget", rules.budget},
            {"spent", progress.step.spent},
            {"cost_to_decide", number_or_null(progress.step.cost_to_decide)},
            {"stage", name_of(progress.step.stage)},
            {"rounds", progress.rounds},
            {"rounds_complete", progress.complete},
            {"goals", Json::array()},
            {"next_round", Json::array()}};
  for (const GoalState& goal : progress.step.goals) json["goals"].push_back(goal_json(goal));
  for (const fits::DesignRun& run : progress.step.batch) {
    json["next_round"].push_back(
        {{"layers", run.layers}, {"width", run.width}, {"seed", run.seed}});
  }
  return json;
}

}  // namespace fathom::study
