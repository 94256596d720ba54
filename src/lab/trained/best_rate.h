// Learning rates are tuned, not assumed: of the runs that differ only in rate and seed, those at
// the best rate count.
#pragma once

#include <cmath>
#include <map>
#include <vector>

#include "lab/trained/training_part.h"

namespace fathom::lab {

/// The runs at the rate at which the sum of `key` over a cell's seeds is least. `cell_of` says in
/// which cell a run is. A run that diverged is worse than any other.
template <class CellOf>
std::vector<TrainedRun> at_best_rate(const std::vector<TrainedRun>& runs, const CellOf& cell_of,
                                     const char* key = "loss") {
  std::map<decltype(cell_of(runs[0])), std::map<double, double>> sums;
  for (const TrainedRun& run : runs) {
    sums[cell_of(run)][run.spec.learning_rate] += run.diverged() ? INFINITY : run.number(key);
  }
  std::vector<TrainedRun> best;
  for (const TrainedRun& run : runs) {
    const auto& rates = sums.at(cell_of(run));
    const double sum = rates.at(run.spec.learning_rate);
    bool first = true;  // of two rates that tie the lower
    bool least = true;
    for (const auto& [rate, other] : rates) {
      if (other < sum) least = false;
      if (other == sum && rate < run.spec.learning_rate) first = false;
    }
    if (least && first) best.push_back(run);
  }
  return best;
}

}  // namespace fathom::lab
