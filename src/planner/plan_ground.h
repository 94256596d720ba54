// What a plan is based on: the budget in parameters, its tokens, and the law bound to them.
#pragma once

#include "planner/planner.h"

namespace fathom::planner {

struct Ground {
  laws::Budget budget;
  double tokens;
  laws::LawPointer law;  // with a loss: its own, or one borrowed (laws/consensus.h)
};

/// A FLOP budget is solved for the size whose optimal shape spends it. ConfigError when no size
/// does, or when the law is not known.
Ground find_ground(const PlanRequest& request);

}  // namespace fathom::planner
