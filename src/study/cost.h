// What a study costs: work, memory and time on this machine.
#pragma once

#include <cmath>
#include <vector>

#include "study/speed.h"

namespace fathom::study {

struct StudyCost {
  double flops = 0, tokens = 0;  // steps that a shorter run did before are not counted again
  double memory_bytes = 0;       // of the largest model
  int jobs = 1;                  // models at once
  SpeedModel speed;              // of this machine; empty when nothing was timed
  double seconds = NAN;          // of the whole study

  /// All models at once need more than this machine has.
  bool exceeds_memory = false;
};

/// Models at once by default: one per core, one on a GPU.
int default_jobs(const StudySpec& spec);

/// `jobs` 0: the default. Times a few steps unless told not to or the device is not here.
StudyCost estimate_cost(const StudySpec& spec, const std::vector<PlannedRun>& runs, int jobs,
                        bool timed);

}  // namespace fathom::study
