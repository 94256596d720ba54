// Claims about what training finds, each a list of runs and what their records say.
#pragma once

#include "lab/frame/experiment.h"

namespace fathom::lab {

Experiment induction_experiment();
Experiment hop_training_experiment();
Experiment cycle_training_experiment();
Experiment counting_training_experiment();
Experiment sublayer_order_experiment();
Experiment admin_training_experiment();
Experiment two_regimes_experiment();
Experiment data_depth_experiment();
Experiment auto_sizing_experiment();
Experiment softmax_free_experiment();
Experiment sliced_experiment();
Experiment wide_deep_experiment();
Experiment head_size_experiment();
Experiment head_roles_experiment();

}  // namespace fathom::lab
