// Many separation ranks at once.
//
// Settings run in parallel, each on one core (independent eliminations on separate cores are faster
// than threads within one), the largest first, as many as memory allows.
#pragma once

#include <functional>
#include <vector>

#include "exact/rank_records.h"

namespace fathom::exact {

struct TableProgress {
  /// A setting is finished; `done` of `total`.
  std::function<void(std::size_t index, const RankResult& result, std::size_t done,
                     std::size_t total)>
      finished;
};

/// Results in the order of the settings. Everything is validated, and refused if it cannot fit in
/// memory, before the first one starts. `records` may be null; calls are made under a lock.
std::vector<RankResult> compute_ranks(const std::vector<RankSetting>& settings,
                                      const RankOptions& options, RankRecords* records = nullptr,
                                      const TableProgress& progress = {});

}  // namespace fathom::exact
