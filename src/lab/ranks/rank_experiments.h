// The claims on separation rank: arXiv 2006.12467 (attention), 1605.06743 (convolutions),
// 1710.09431 (recurrence), and this project's own (docs/theory.md).
#pragma once

#include "lab/frame/experiment.h"

namespace fathom::lab {

Experiment theorem_one_experiment();
Experiment theorem_two_experiment();
Experiment theorem_two_upper_experiment();
Experiment corollary_experiment();
Experiment invariance_experiment();
Experiment residual_experiment();
Experiment head_experiment();
Experiment convnet_experiment();
Experiment recurrent_experiment();
Experiment defect_experiment();
Experiment partial_width_experiment();

}  // namespace fathom::lab
