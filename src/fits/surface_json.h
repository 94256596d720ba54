// The surface as JSON: `.surface` of `study fit --json` and of the report's document.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "fits/surface_fit.h"

namespace fathom::fits {

nlohmann::ordered_json surface_json(const SurfaceFit& fit);

}  // namespace fathom::fits
