// The JSON of a fitted study.
#pragma once

#include "cli/json_output.h"
#include "laws/study_fit.h"

namespace fathom {

Json study_fit_json(const laws::StudyFit& fit);

}  // namespace fathom
