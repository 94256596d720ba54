// Places for activations in one arena: two tensors share memory unless some program needs both at
// the same time.
//
// A tensor lives from the first to the last op of a program that touches it. An op may say that a
// result may lie on one of its operands (Uses::in_place); such pairs become one block when the
// operand dies there in every program. Blocks are placed largest first at the lowest free offset.
#pragma once

#include <vector>

#include "engine/plan/op.h"
#include "engine/plan/tensor.h"

namespace fathom::engine {

inline constexpr std::int64_t kTensorAlignment = 256;

/// Sets offset_bytes of every activation in `tensors`; returns the size of the arena.
/// `kept` tensors stay readable until the end of every program that writes them. With `slack` the
/// operands of weight gradients keep their place as many ops longer as costs no memory, and those
/// of a product until the activation or norm behind it is through.
std::int64_t lay_out_activations(std::vector<Tensor>& tensors,
                                 const std::vector<const std::vector<Op>*>& programs,
                                 const std::vector<TensorId>& kept, bool slack = false);

}  // namespace fathom::engine
