// All that would be run until every goal is decided, as far as can be foreseen.
//
// Greedy choices (design_choice.h) buy many cheap runs early that dearer ones make needless later.
// So the way to the end is gone greedily first and then pruned: whatever the goals can do without
// is left out, dearest first. In the middle of a design that spares 5 to 30 % of what is still to
// come.
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
  /// Choices that the plan has left.
  std::vector<Choice> open(const std::vector<Choice>& choices) const;
  void take(const Candidate& candidate);
};

/// Choice by choice until all goals are decided. `spent`: so far. Absent when nothing that costs up
/// to `most` would decide them.
std::optional<DesignPlan> greedy_plan(const DesignPicture& start,
                                      const std::vector<Choice>& choices, double spent,
                                      double most);
/// Leaves out of a plan that decides all goals what they can do without.
void prune(const DesignPicture& start, DesignPlan& plan);
/// Both.
std::optional<DesignPlan> plan_ahead(const DesignPicture& start, const std::vector<Choice>& choices,
                                     double spent, double most);

}  // namespace fathom::fits
