// Loss against layers kept, when layers are cut without retraining.
//
//   greedy         each time the layer whose removal costs least, given those already gone
//   by influence   lowest Block Influence first (arXiv 2403.03853)
//   last           from the back, the final layer kept (arXiv 2403.17887's simple rule)
//   random         several orders
//
// All on the same windows.
#pragma once

#include "probe/result.h"
#include "probe/sweep.h"

namespace fathom::probe {

inline constexpr int kRandomOrders = 5;

/// `influence` per layer; up to `most` layers are removed.
Curves measure_curves(Sweep& sweep, std::span<const Window> windows,
                      const std::vector<double>& influence, std::int64_t most);
/// Layer runs it takes per window.
double curves_cost(std::int64_t depth, std::int64_t most);

/// Orders of removal, for tests.
std::vector<std::int64_t> influence_order(const std::vector<double>& influence);
std::vector<std::int64_t> last_order(std::int64_t depth);

}  // namespace fathom::probe
