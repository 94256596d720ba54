// The proximal step of a group penalty, after AdamW (auto-sizing, arXiv 1910.06717): groups of
// weights that the loss does not need become exactly zero and can be taken out of the model.
//
//   x: the weights of a group,  t = learning_rate * strength
//   l21     x <- x max(0, 1 - t / |x|_2)                            (the proximal map of t |x|_2)
//   linf1   x_i <- sign(x_i) min(|x_i|, c), the level c such that  sum_i max(|x_i| - c, 0) = t;
//           x <- 0 where |x|_1 <= t                              (the proximal map of t max |x_i|)
//
// The learning rate is the step's own, without a parameter's multiplier and without what AdamW
// makes of it, as in the authors' code. Sums are taken in double in a fixed order.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ops/prox/prox_kind.h"
#include "engine/plan/uses.h"

namespace fathom::engine {

/// Rows [row, row + rows) and columns [col, col + cols) of a parameter.
struct ProxBlock {
  TensorId parameter;
  std::int64_t row = 0, rows = 0, col = 0, cols = 0;
};

struct ProxGroup {
  std::vector<ProxBlock> blocks;  // no weight is in two groups
  float strength = 0;
};

struct Prox {
  TensorId parameters;  // the whole storage
  ProxKind kind = ProxKind::l21;
  std::vector<ProxGroup> groups;

  Uses uses() const { return {{parameters}, {parameters}}; }
};

}  // namespace fathom::engine
