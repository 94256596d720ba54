// The surface as JSON: `.surface` of `study fit --json` and of the report's document.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "fits/surface_fit.h"

namespace fathom::fits {

/// [low, high]; null for an end that is not known.
nlohmann::ordered_json interval_json(const Interval& interval);
nlohmann::ordered_json surface_json(const SurfaceFit& fit);

}  // namespace fathom::fits
