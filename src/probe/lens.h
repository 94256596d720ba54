// The logit lens: what the model would predict if it stopped after l layers.
//
// p_l = softmax(head(final norm(h_l))). Reported per l: KL(p_L || p_l), how often both pick the
// same token, and the loss of p_l on the true token. Early layers were not trained to be read so.
#pragma once

#include "probe/result.h"
#include "probe/sweep.h"

namespace fathom::probe {

/// Over the windows given; L + 1 entries.
std::vector<LensResult> measure_lens(Sweep& sweep, std::span<const Window> windows);

}  // namespace fathom::probe
