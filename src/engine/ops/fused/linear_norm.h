// A GEMM and the norm next to it as one kernel whose tiles hold whole rows. The tensor between the
// two, the branch or the norm's dy, stays in registers.
//
//   forward    branch = a W^T + b,  then Norm of stream and branch      `linear`, then `norm`
//   backward   dy = d W of the Linear that reads y,  then NormBackward  `linear`, then `norm`
//              d_bias = column sums of the branch's gradient            `bias`, or none
#pragma once

#include "engine/ops/linear/linear.h"
#include "engine/ops/norm/norm.h"

namespace fathom::engine {

struct LinearThenNorm {
  Linear linear;
  Norm norm;

  Uses uses() const { return joined({linear.uses(), norm.uses()}, linear.y); }
};

struct LinearBackwardThenNorm {
  LinearBackward linear;  // dx only
  NormBackward norm;
  LinearBackward bias;  // d_bias only, of the Linear that made the branch

  Uses uses() const { return joined({linear.uses(), norm.uses(), bias.uses()}, linear.dx); }
};

}  // namespace fathom::engine
