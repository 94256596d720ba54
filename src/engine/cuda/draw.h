// Normal numbers drawn on the GPU, equal to the host's bit for bit.
//
// log and cos of the two libraries differ in the last bits of a double, which the rounding to f32
// almost always hides. A value so close to the midpoint of two floats that it might not is left to
// the host: about one in four million.
#pragma once

#include <vector>

#include "engine/cuda/check.h"
#include "engine/executor.h"

namespace fathom::engine::cuda {

struct DrawResult {
  bool complete = false;               // false: too many to list, which does not happen
  std::vector<std::int64_t> doubtful;  // elements left to the host, in no particular order
};
/// Fills values[0, size) on the default stream and waits.
DrawResult draw_normal(const NormalDraw& draw, float* values, std::int64_t size);

}  // namespace fathom::engine::cuda
