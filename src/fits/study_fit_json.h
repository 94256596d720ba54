// A fitted study as JSON: what `study fit --json` prints and the report's document carries.
// web/schema/report.schema.json describes it as `fit`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "fits/study_fit.h"

namespace fathom::fits {

nlohmann::ordered_json to_json(const StudyFit& fit);

}  // namespace fathom::fits
