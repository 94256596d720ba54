// A question as the user asks it, with everything left open filled in.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "exact/rank_setting.h"

namespace fathom::exact {

/// Zero means "not given".
struct RankRequest {
  Family family = Family::attention;
  std::size_t layers = 0;                      // conv: follows from the positions
  std::size_t width = 0;                       // attention: d; circuits: channels
  std::size_t positions = 0;                   // attention: twice the input dimension; circuits: 8
  std::string partition = "left-right";        // as parse_partition accepts it
  std::optional<std::size_t> output_position;  // the last
  std::size_t heads = 1;
  std::size_t output_component = 0;
  bool causal = false;
  bool residual = false;
  std::size_t embedding_rank = 0;
  std::size_t inputs = 0;  // circuits: the channels
  Pooling pooling = Pooling::contiguous;
};

/// ConfigError for what is missing or meaningless.
RankSetting resolve(const RankRequest& request);

}  // namespace fathom::exact
