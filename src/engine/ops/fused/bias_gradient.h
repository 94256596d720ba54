// A backward op that makes the gradient of a Linear's result and sums its columns while it has them
// in registers: the gradient of that Linear's bias.
#pragma once

#include "engine/ops/activation/activation.h"
#include "engine/ops/attention/attention.h"
#include "engine/ops/linear/linear.h"
#include "engine/ops/norm/norm.h"

namespace fathom::engine {

template <class Maker>
struct WithBiasGradient {
  Maker maker;
  LinearBackward bias;  // d_bias only; its dy is what the maker makes

  Uses uses() const { return joined({maker.uses(), bias.uses()}); }
};

}  // namespace fathom::engine
