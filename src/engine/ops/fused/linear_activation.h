// A GEMM and the activation of its result as one kernel, forward and backward. The tensor between
// the two, u or its gradient's dy, stays in registers.
//
//   forward    u = x W^T,  y = f(u + bias),  slopes = f'(u + bias)      `linear`, then `activation`
//   backward   dy = d W of the Linear that reads y,  du = dy slopes     `linear`, then `activation`
//              d_bias = column sums of du                               `bias`, or none
//
// Both directions of one activation fuse or neither does: the slopes between them may be in an
// order specific to the kernels.
#pragma once

#include "engine/ops/activation/activation.h"
#include "engine/ops/linear/linear.h"

namespace fathom::engine {

struct LinearThenActivation {
  Linear linear;  // without a bias: the activation adds it
  Activation activation;

  Uses uses() const { return joined({linear.uses(), activation.uses()}, linear.y); }
};

struct LinearBackwardThenActivation {
  LinearBackward linear;  // dx only
  ActivationBackward activation;
  LinearBackward bias;  // d_bias only, of the Linear that made u

  Uses uses() const { return joined({linear.uses(), activation.uses(), bias.uses()}, linear.dx); }
};

}  // namespace fathom::engine
