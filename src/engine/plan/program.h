// The programs of a plan.
#pragma once

#include <vector>

#include "core/enum_array.h"
#include "engine/plan/op.h"

namespace fathom::engine {

enum class Program : std::uint8_t {
  evaluate,          // forward and loss, without dropout
  train,             // forward, backward; parameter gradients overwritten
  train_accumulate,  // the same, parameter gradients added to
  update,            // norm, clip, AdamW, proximal steps, compute copies
  refresh,           // compute copies only: after the host wrote parameters
};
constexpr auto enum_names(Program) {
  return std::array{"evaluate", "train", "train_accumulate", "update", "refresh"};
}

using Programs = EnumArray<Program, std::vector<Op>>;

}  // namespace fathom::engine
