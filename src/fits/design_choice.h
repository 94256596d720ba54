// One step of a design's greedy search: what may be added next, and which choice gains most for its
// cost.
#pragma once

#include <vector>

#include "fits/goal_forecast.h"

namespace fathom::fits {

/// What is added at once: one trajectory, or two of about the same size. At a new size a single
/// depth only determines the level; two determine which depth is better.
using Choice = std::vector<const Candidate*>;
double cost_of(const Choice& choice);

/// Points into `candidates`.
std::vector<Choice> list_choices(const std::vector<Candidate>& candidates);

/// The best choice by gain for cost; null when none fits the money or none helps.
const Choice* pick(const GoalForecast& forecast, const std::vector<Choice>& choices, double money);

}  // namespace fathom::fits
