// The predicted way to the end: all runs until every goal is decided.
//
// Greedy choices (design_choice.h) buy many cheap runs early that more expensive ones make
// redundant later. So the way to the end is first planned greedily and then pruned: everything the
// goals can do without is dropped, most expensive first. In the middle of a design that saves 5 to
// 30 % of the remaining cost.
#pragma once

#include <optional>
#include <vector>

#include "fits/design_choice.h"

namespace fathom::fits {

struct PlanItem {
  const Candidate* candidate = nullptr;
  double times = 0;  // seeds
};

struct DesignPlan {
  std::vector<PlanItem> items;

  double cost() const;
  /// Choices that are still left in the plan.
  std::vector<Choice> open(const std::vector<Choice>& choices) const;
  void take(const Candidate& candidate);
};

/// Adds choice by choice until all goals are decided. `spent`: so far. Absent when nothing that
/// costs up to `most` would decide them.
std::optional<DesignPlan> greedy_plan(const GoalForecast& start, const std::vector<Choice>& choices,
                                      double spent, double most);
/// Drops from a plan that decides all goals whatever they can do without.
void prune(const GoalForecast& start, DesignPlan& plan);
/// Plans greedily, then prunes.
std::optional<DesignPlan> plan_ahead(const GoalForecast& start, const std::vector<Choice>& choices,
                                     double spent, double most);

}  // namespace fathom::fits
