// The claims of arXiv 2402.09268: k hops in floor(log2 k) + 2 layers, and how deep connectivity of
// graphs must be.
#pragma once

#include "lab/frame/experiment.h"

namespace fathom::lab {

Experiment hop_experiment();
Experiment connectivity_experiment();

}  // namespace fathom::lab
