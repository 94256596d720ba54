// The numbers that change from step to step. Everything else of a step is fixed in its plan.
#pragma once

#include <cstdint>

namespace fathom::engine {

struct StepScalars {
  float loss_scale = 1;     // factor of the summed token losses, 1 / (counted tokens of the step)
  float learning_rate = 0;  // of a parameter with multiplier 1
  float clip_norm = 0;      // 0: no clipping
  std::int64_t step = 1;    // updates done so far plus one (AdamW's t)
  std::uint64_t draw = 0;   // micro-batches seen so far: selects the dropout masks
};

}  // namespace fathom::engine
