// Places activations in one arena: two tensors share memory unless some program needs both at the
// same time.
//
// A tensor lives from the first to the last op of a program that touches it. An op may declare that
// a result can overwrite one of its operands (Uses::in_place); such pairs become one block when the
// operand dies there in every program. Blocks are placed largest first at the lowest free offset.
//
// An op of the second lane may run later than its position in the program: what it reads stays in
// place for as many more ops as a memory budget allows. (Where that is not enough, the lanes wait
// for each other.)
#pragma once

#include <vector>

#include "engine/plan/lanes.h"
#include "engine/plan/program.h"

namespace fathom::engine {

inline constexpr std::int64_t kTensorAlignment = 256;

using ProgramLanes = EnumArray<Program, std::vector<Lane>>;

/// Sets offset_bytes of every activation in `tensors`; returns the size of the arena.
/// `kept` tensors stay readable until the end of every program that writes them.
std::int64_t lay_out_activations(Tensors& tensors, const Programs& programs,
                                 const std::vector<TensorId>& kept);
/// The same with lanes, in at most `budget` bytes if that is possible at all.
std::int64_t lay_out_activations(Tensors& tensors, const Programs& programs,
                                 const std::vector<TensorId>& kept, const ProgramLanes& lanes,
                                 std::int64_t budget);

}  // namespace fathom::engine
