// What the map shows whatever the budget: the published models, and modelled times over depth
// and width.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "planner/planner.h"

namespace fathom::report {

/// Every published dense decoder, with exact counts, times per profile and its place among the laws
/// at its own size and tokens.
nlohmann::ordered_json published_models(const std::vector<Hardware>& hardware,
                                        std::int64_t step_tokens);

/// Seconds per trained token and per decoded token at whole depths and friendly widths, per
/// profile.
nlohmann::ordered_json time_field(const planner::PlanRequest& request,
                                  const std::vector<Hardware>& hardware);

}  // namespace fathom::report
