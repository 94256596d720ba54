// The claims of arXiv 2310.13897 on masked hard attention: depth is strictly more power (the
// calculator for any regular language is here), star-free languages are exactly what it
// recognises, and B-RASP programs become weights.
#pragma once

#include "lab/frame/experiment.h"

namespace fathom::lab {

Experiment hard_attention_experiment();
Experiment star_free_experiment();
Experiment brasp_experiment();

}  // namespace fathom::lab
