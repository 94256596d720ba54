// The claims on rank collapse: doubly exponential without a mask (arXiv 2103.03404), exponential
// with one (arXiv 2405.18781), what skips and MLPs change, and which paths carry the tokens.
#pragma once

#include "lab/frame/experiment.h"

namespace fathom::lab {

Experiment rank_collapse_experiment();
Experiment masked_collapse_experiment();
Experiment skip_collapse_experiment();
Experiment path_length_experiment();

}  // namespace fathom::lab
