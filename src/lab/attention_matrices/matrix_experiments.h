// What one attention head cannot produce: attention matrices above its head size (arXiv
// 2002.07028), and outputs outside the convex hull of its values (arXiv 2005.09561).
#pragma once

#include "lab/frame/experiment.h"

namespace fathom::lab {

Experiment low_rank_bottleneck_experiment();
Experiment softmax_hull_experiment();

}  // namespace fathom::lab
