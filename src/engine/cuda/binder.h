// Programs as tasks: every op bound to its memory and kernels, on its lane, with what it must wait
// for on the other.
#pragma once

#include <string>

#include "engine/cuda/mailbox.h"
#include "engine/cuda/memory.h"
#include "engine/cuda/module.h"

namespace fathom::engine::cuda {

struct Task {
  BoundOp run;
  std::size_t place = 0;  // of its op in the plan's program
  Lane lane = Lane::main;
};

/// Tasks in the order that is correct without lanes.
struct BoundProgram {
  std::vector<Task> tasks;
  LaneSchedule schedule;
};

/// Binds all programs of a plan. Bound ops use `memory`, `gemms` and `scalars` for as long as they
/// run; algorithms are picked by timing on that memory, which is cleared afterwards.
EnumArray<Program, BoundProgram> bind_programs(const StepPlan& plan, const CudaOptions& options,
                                               const Gpu& gpu, Memory& memory, GemmLibrary& gemms,
                                               const DeviceScalars* scalars);

}  // namespace fathom::engine::cuda
