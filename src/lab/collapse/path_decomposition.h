// The exact path decomposition of arXiv 2103.03404: with skips and without norm, MLP and biases a
// network of L layers of H heads is a sum over (H + 1)^L paths, each of which takes at every layer
// the skip or one head. Attention matrices are those of the whole network.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "lab/collapse/stack_spec.h"

namespace fathom::lab {

struct PathLength {
  std::size_t length = 0;        // layers at which the path goes through a head
  std::size_t paths = 0;         // C(L, length) H^length
  double relative_residual = 0;  // mean over paths of |X - token mean| / |X|
};

struct PathDecomposition {
  std::vector<PathLength> lengths;  // 0 .. L
  /// |sum of all paths - output of the network| / |output|.
  double relative_error = 0;
};

/// Uses the spec's mask; skips must be on, norm and MLP off. Computed in 106 bits. `look` gets the
/// share of paths that are done and may throw.
PathDecomposition decompose_paths(const StackSpec& spec, const StackDraw& draw,
                                  const std::function<void(double)>& look = {});

}  // namespace fathom::lab
