// The tables behind the map's sliders: one plan per stop.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "planner/planner.h"

namespace fathom::report {

/// A number of the map's document: kMapDigits significant digits.
double map_number(double value);

/// Stops of the sliders: budgets (parameters or FLOPs) and tokens per parameter, both rising.
struct MapStops {
  std::vector<double> parameters;
  std::vector<double> flops;
  std::vector<double> tokens_per_parameter;
};

/// The request's tokens as the second slider counts them.
double tokens_per_parameter_of(const planner::PlanRequest& request, double parameters);

/// Round numbers, and the request's own.
MapStops make_stops(const planner::PlanRequest& request, double parameters);

struct TableRequest {
  const planner::PlanRequest& plan;
  const MapStops& stops;
  const std::vector<Hardware>& hardware;
  std::vector<laws::LawPointer> overlays = {};  // laws besides those of the plan
};

/// The plans of every budget at one count of tokens, null where nothing fits; `by_flops` chooses
/// the budgets.
nlohmann::ordered_json plan_row(const TableRequest& request, bool by_flops,
                                double tokens_per_parameter);

/// {"stops": [...], "plans": one row per count of tokens}; rows of other counts than `only` are
/// null where it is given.
nlohmann::ordered_json budget_table(const TableRequest& request, bool by_flops,
                                    std::optional<double> only = {});

}  // namespace fathom::report
