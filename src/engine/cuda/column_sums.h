// Column sums that an op makes along the way: where they go, and how.
#pragma once

namespace fathom::engine::cuda {

struct ColumnSums {
  float* to = nullptr;  // f32 [1, width]; null: not wanted
  bool accumulate = false;
};

}  // namespace fathom::engine::cuda
