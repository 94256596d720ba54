// The fusion pass: programs in, programs with fused ops out, before memory is laid out.
//
// The input is the programs of a plan, as the differentiator left them, and what a device offers,
// as plain data (device_offers.h). The pass looks at neighbouring ops and replaces
//
//   Linear, Activation                 -> LinearThenActivation
//   LinearBackward, ActivationBackward -> LinearBackwardThenActivation   with the column sums that
//                                         are the bias gradient of the Linear whose dy it makes
//   Linear, Norm                       -> LinearThenNorm
//   LinearBackward, NormBackward       -> LinearBackwardThenNorm         with the bias gradient of
//                                         the branch
//   ActivationBackward, NormBackward or AttentionBackward, LinearBackward
//                                      -> WithBiasGradient, LinearBackward without its bias
//   LinearBackward                     -> one for the parameters, one for dx: no op waits for the
//                                         first, so a second lane can take it (lanes.h)
//
// and moves the bias of a Linear to the Activation that alone reads its result.
//
// Two ops fuse only where nothing else needs the tensor between them: it has one reader, is
// overwritten rather than added to, and is not kept for the host. An activation fuses in both
// directions or in neither, because kernels may choose the layout of the slopes between them; where
// training fuses, evaluation does too, so that both round alike. Everything else is a limit of the
// device on sizes and types.
//
// Whether fusing a GEMM with a norm pays can only be measured. Shapes that `offers` says nothing
// about are returned as unmeasured; the caller adds the answers to the offers and runs the pass
// again.
//
// A fused op holds its parts. What it does not write to memory is not among its uses(): lifetimes,
// and so the arena, follow from the new programs without further rules.
#pragma once

#include <vector>

#include "engine/plan/device_offers.h"
#include "engine/plan/program.h"
#include "engine/plan/tensor.h"

namespace fathom::engine {

struct FusedPrograms {
  Programs programs;
  std::vector<LinearNormShape> unmeasured;  // each once, in the order of their first use
};

/// `kept` tensors are read by the host after a run.
FusedPrograms fuse(Programs programs, const Tensors& tensors, const std::vector<TensorId>& kept,
                   const DeviceOffers& offers);

}  // namespace fathom::engine
