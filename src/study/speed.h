// How long the runs of a study will take, from steps timed on this machine.
//
// A few shapes of the study are timed (train/step_benchmark), all jobs at once as the study will
// run them; the FLOP/s of the others are interpolated in the logarithm of FLOPs per step.
//
//   seconds = steps * flops_per_step / rate
//             + evaluations * eval_tokens * flops_per_token / 3 / rate
#pragma once

#include <vector>

#include "study/planned_run.h"

namespace fathom::study {

struct SpeedPoint {
  double step_flops = 0;
  double flops_per_second = 0;
};

struct SpeedModel {
  std::vector<SpeedPoint> points;  // by step_flops; empty: not measured
  double measured_seconds = 0;     // what the measurement took

  double seconds(const PlannedRun& run) const;
};

/// Times the smallest, a middle and the largest shape, as far as `limit_seconds` in all allow, with
/// `jobs` processes' worth of load simulated by as many threads.
SpeedModel measure_speed(const std::vector<PlannedRun>& runs, int jobs, double limit_seconds);

/// Time of the whole study when runs start in order on `jobs` workers.
double study_seconds(const std::vector<PlannedRun>& runs, const SpeedModel& speed, int jobs);

}  // namespace fathom::study
