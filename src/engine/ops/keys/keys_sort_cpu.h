// KeyMap::sort on the CPU; keys_cpu.cpp binds the other maps.
#pragma once

#include "engine/cpu/cpu_ops.h"
#include "engine/ops/keys/keys_sort.h"

namespace fathom::engine::cpu {

BoundOp bind_sort(const MapKeys& op, const Context& context);
BoundOp bind_sort(const MapKeysBackward& op, const Context& context);

}  // namespace fathom::engine::cpu
