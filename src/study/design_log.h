// The rounds of an adaptive study, in its design file: which trajectories each round trains.
//
// A round is written atomically before its first run begins, so a study that was killed finds the
// round it was in. The choice of the next round needs only this file, the records and the spec.
// Costs in seconds are based on steps that were timed once, when the study began: they are kept
// here too, because a second timing would change the choice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/planned_run.h"
#include "study/speed.h"
#include "study/study_folder.h"

namespace fathom::study {

struct DesignRound {
  std::vector<Trajectory> runs;
  double cost = 0;  // predicted, in the design's unit
};

struct DesignLog {
  std::string design;    // DesignRules::text()
  std::string training;  // hash of how runs are trained, and of the grid
  SpeedModel speed;      // where costs are in seconds
  int jobs = 1;          // models at once in that timing
  std::vector<DesignRound> rounds;

  std::vector<Trajectory> trajectories() const;
};

/// Absent when no round was started. DataError when the file is damaged.
std::optional<DesignLog> read_design_log(const StudyFolder& folder);
void write_design_log(const StudyFolder& folder, const DesignLog& log);

/// A log for this spec, without rounds.
DesignLog new_design_log(const StudySpec& spec);

/// ConfigError when the folder has rounds that were chosen for another design, other training or
/// another grid. A larger budget is still the same design.
void require_same_design(const StudyFolder& folder, const StudySpec& spec);

}  // namespace fathom::study
