// An adaptive study in words and as JSON: `.design` of `study plan --json` and `study status
// --json`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "study/design_rules.h"

namespace fathom::study {

struct DesignProgress;

/// "40 runs", "1.2e+17 FLOPs", "3 min 20 s".
std::string cost_text(double cost, CostUnit unit);

/// "b: 0.1420 (95 %: 0.0900 to 0.2100); error 0.031, target 0.015: not decided".
std::string goal_text(const fits::GoalState& goal);

/// Goals, what is decided, the price of the next round and how it ends.
std::vector<std::string> design_lines(const DesignProgress& progress, const DesignRules& rules);

/// goal, target, error, decided: of the goal that is farthest from its target.
nlohmann::ordered_json design_json(const DesignProgress& progress, const DesignRules& rules);

}  // namespace fathom::study
