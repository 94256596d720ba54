// The verdict of a plan: what to take, what is as good, what leaving it buys, who disagrees.
#pragma once

#include "planner/planner.h"

namespace fathom::planner {

/// From the numbers already in the plan; `law` is the one that planned it.
Verdict make_verdict(const Plan& plan, const laws::Law& law);

}  // namespace fathom::planner
