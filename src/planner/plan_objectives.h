// The shape for each objective, so that they can be shown together.
#pragma once

#include "planner/planner.h"

namespace fathom::planner {

/// loss: the law's optimum, rounded.
/// train-time: least modelled time to a loss within the tolerance of the best.
/// decode-latency: fastest single-sequence decoding among shapes within the tolerance.
/// accuracy: the deepest shape that costs at most a fifth of the tolerance in loss, because
///   benchmarks favour depth at equal loss (arXiv 2109.10686, 2402.14905, 2502.06857).
std::vector<ObjectiveRow> choose_objectives(const Plan& plan, const PricingContext& pricing);

}  // namespace fathom::planner
