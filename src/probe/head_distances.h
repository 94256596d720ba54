// How alike heads are: the Jensen-Shannon divergence of their attention rows (arXiv 1906.04341,
// section 6), in nats, mean over queries from the sixteenth on and over windows.
#pragma once

#include <span>

#include "pretrained/weights.h"
#include "probe/windows.h"

namespace fathom::probe {

/// Means over pairs of heads; NaN where there is no such pair.
struct HeadDistances {
  double within_layers = 0;
  double between_layers = 0;
};

/// The model's layers must be in memory.
HeadDistances measure_head_distances(pretrained::Weights& weights, std::span<const Window> windows);

/// Divergence of two rows of weights that each add up to 1.
double jensen_shannon(std::span<const float> a, std::span<const float> b);

}  // namespace fathom::probe
