// The verdict of a plan: what to choose, what is as good, what deviating from it buys, which laws
// disagree.
#pragma once

#include "planner/planner.h"

namespace fathom::planner {

/// Depths that were trained at the plan's size and length, by laws with a loss of their own; where
/// none of them lies in the band, those of all its law's data.
Interval trained_depths(const Plan& plan);

/// From the numbers already in the plan.
Verdict make_verdict(const Plan& plan);

}  // namespace fathom::planner
