// The JSON of a fitted study.
#pragma once

#include "cli/json_output.h"
#include "fits/study_fit.h"

namespace fathom {

Json study_fit_json(const fits::StudyFit& fit);

}  // namespace fathom
