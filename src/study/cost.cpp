#include "study/cost.h"

#include <algorithm>
#include <thread>

#include "core/counts.h"
#include "core/memory.h"
#include "engine/device.h"

namespace fathom::study {

int default_jobs(const StudySpec& spec) {
  if (spec.device != engine::DeviceKind::cpu) return 1;
  const std::int64_t threads = spec.run_spec(spec.first_shape(), 10, 1).threads;
  const std::int64_t cores = std::thread::hardware_concurrency();
  return static_cast<int>(std::max<std::int64_t>(1, cores / threads));
}

StudyCost estimate_cost(const StudySpec& spec, const std::vector<PlannedRun>& runs, int jobs,
                        bool timed) {
  StudyCost cost;
  cost.jobs = jobs > 0 ? jobs : default_jobs(spec);
  for (const PlannedRun& run : runs) {
    cost.flops += run.flops * run.fresh_share();
    cost.tokens += as_double(run.tokens) * run.fresh_share();
    cost.memory_bytes = std::max(cost.memory_bytes, run.memory_bytes);
  }
  const bool on_cpu = spec.device == engine::DeviceKind::cpu;
  cost.exceeds_memory = on_cpu && cost.memory_bytes * cost.jobs > usable_memory_bytes();
  if (timed && (on_cpu || engine::find_cuda_device())) {
    constexpr double kTimingSeconds = 5;
    cost.speed = measure_speed(runs, cost.jobs, kTimingSeconds);
    cost.seconds = study_seconds(runs, cost.speed, cost.jobs);
  }
  return cost;
}

}  // namespace fathom::study
