// Does a study's answer hold when training changes? Shapes around the best depth at one size are
// trained again with half and twice the learning rate, half the batch and a new seed; what they say
// is judged by fits/robustness.h.
//
// The runs are in the study's own folder, next to its runs but not named by its spec: fits and
// reports of the study do not see them, and a second call finds them done.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fits/robustness.h"
#include "study/run_row.h"
#include "study/study.h"

namespace fathom::study {

struct RobustChange {
  std::string name;              // "rate x 0.5"
  std::vector<std::string> ids;  // of its runs
};

struct RobustPlan {
  double params = 0;  // the size
  double layers = 0;  // best depth there
  std::vector<GridShape> shapes = {};
  std::vector<RobustChange> changes = {};
  Study study;  // the folder with these runs alone, for an executor
};

/// `size`: where to look, or the largest at which the best depth has two bounds. DataError when the
/// study has no such size, or fewer than three of its shapes lie near it.
RobustPlan plan_robust(const Study& study, const std::vector<RunRow>& rows,
                       std::optional<double> size);

/// From the folders.
fits::Robustness judge_robust(const RobustPlan& plan, const std::vector<RunRow>& rows);

}  // namespace fathom::study
