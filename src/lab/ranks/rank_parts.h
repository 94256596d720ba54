// Separation ranks as parts of an experiment: settings in, exact ranks out (room `exact`).
#pragma once

#include <string>
#include <vector>

#include "exact/separation_rank.h"
#include "lab/frame/experiment.h"

namespace fathom::lab {

/// Attention on `positions` positions (0: twice the width), left-right partition, output last.
exact::RankSetting attention_setting(std::size_t layers, std::size_t width, std::size_t heads,
                                     std::size_t positions = 0);

/// Twice this is the largest number of positions for an exact rank.
inline constexpr double kMaxRankWidth = 2048;

struct RankQuestion {
  exact::RankSetting setting;
  bool direct = false;       // from the definition, where the fast form assumes the answer
  std::size_t max_side = 0;  // no grid larger than this; the rank is then a lower bound
  double least_rank = 0;     // known beforehand: the grid must be larger
};

/// One part per question. ConfigError for what is meaningless or would not fit in memory or time.
/// In a custom set-up, grids that have to grow stop at a tenth of the time limit.
std::vector<Part> rank_parts(const Setup& setup, std::vector<RankQuestion> questions);

/// The result of a part; DataError for a damaged record.
exact::RankResult rank_result(const Json& result);

/// "110", or "at least 110".
std::string rank_words(const exact::RankResult& result);

}  // namespace fathom::lab
