// Lower bounds on the cost of an op: the FLOPs of its GEMMs and the bytes of operands and results.
#pragma once

#include "engine/plan/op.h"

namespace fathom::engine {

/// FLOPs of the GEMMs of an op, 2 for each multiplication and addition; scores of attention that
/// the mask hides are not counted. The backward of attention counts twice its forward, though it
/// recomputes the scores. A fused op has those of its parts.
double flops_of(const Op& op, const Tensors& tensors);

/// Bytes if every operand is read and every result written once.
double bytes_of(const Op& op, const Tensors& tensors);

}  // namespace fathom::engine
