// The shape for each objective, so that they can be shown together.
#pragma once

#include "planner/planner.h"

namespace fathom::planner {

/// Every lattice shape around the band, priced, by depth. ConfigError when none comes close to the
/// budget.
std::vector<Candidate> price_lattice(const Plan& plan, const PricingContext& pricing);

/// loss: the least loss under the plan's law among shapes that meet the budget.
/// train-time: least modelled time to a loss within the tolerance of the best.
/// decode-latency: fastest single-sequence decoding among shapes within the tolerance.
std::vector<ObjectiveRow> choose_objectives(const Plan& plan);

}  // namespace fathom::planner
