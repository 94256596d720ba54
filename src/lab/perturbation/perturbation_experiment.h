// ADMIN's mechanism (arXiv 2004.08249): how much the output of an untrained network moves when all
// its weights do, against depth.
#pragma once

#include "lab/frame/experiment.h"

namespace fathom::lab {

Experiment admin_experiment();

}  // namespace fathom::lab
