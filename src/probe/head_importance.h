// How much the loss depends on each head, by one backward pass (arXiv 1905.10650, eq. 5).
//
// A gate xi multiplies what a head writes; importance is the mean over windows of |dL/dxi| at
// xi = 1, L the window's loss in nats per token. It is a first-order estimate of what removing the
// head changes, of either sign, and costs about three forward passes for all heads together; the
// heads at both ends of the ranking are then actually removed (heads.h).
#pragma once

#include "probe/result.h"
#include "probe/sweep.h"

namespace fathom::probe {

/// How well the order by importance matches that by |removal cost|, over heads that have both;
/// nothing for fewer than three. Where the loss is close to 0 so is every slope, and importance
/// says little.
std::optional<double> importance_agreement(const std::vector<HeadResult>& heads);

/// Sets `importance` of all heads. The model's layers must be in memory.
void measure_head_importance(Sweep& sweep, std::span<const Window> windows,
                             std::vector<HeadResult>& heads);

}  // namespace fathom::probe
