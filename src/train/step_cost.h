// The minimum cost of a training step: lower bounds on its time on a machine of known speeds.
#pragma once

namespace fathom::engine {
class StepPlan;
}

namespace fathom::train {

/// FLOPs of a step's GEMMs, forward and backward (engine/plan/op_cost.h).
double training_flops(const engine::StepPlan& plan);

/// Bytes of a step and its update if every op reads its operands and writes its results once. Fused
/// ops move only what they bring to memory.
double training_bytes(const engine::StepPlan& plan);

}  // namespace fathom::train
