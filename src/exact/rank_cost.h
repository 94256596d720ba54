// What a rank will cost, before any work: a model of the time measured on one core, good to a
// factor of three.
//
//   evaluation   (values on the grid) x (multiply-adds of one value) x (seconds of a multiply-add)
//   elimination  side^3 for every block
#pragma once

#include <cstddef>
#include <vector>

#include "exact/separation_rank.h"

namespace fathom::exact {

/// Seconds on one core for one prime at blocks of these sides.
double grid_seconds(const RankSetting& setting, Method method,
                    const std::vector<std::size_t>& sides);

struct RankCost {
  double seconds = 0;  // of one thread, all primes
  double bytes = 0;
};

/// Cost of the whole search if no grid grows beyond `largest` (0: the first grids only).
RankCost search_cost(const RankSetting& setting, const RankOptions& options,
                     std::size_t largest = 0);

/// Whether grids start small and grow, because the proved bounds may be far from the rank.
bool grids_grow(const RankSetting& setting);

/// The largest side, doubled from the first one, up to which the search stays within the cost.
std::size_t side_within(const RankSetting& setting, const RankOptions& options,
                        const RankCost& limit);

}  // namespace fathom::exact
