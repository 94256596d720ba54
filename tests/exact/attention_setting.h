// A setting of a self-attention network, as most tests of ranks begin.
#pragma once

#include <string>

#include "exact/rank_setting.h"

namespace fathom::exact {

inline RankSetting attention(std::size_t layers, std::size_t width, std::size_t heads,
                             const std::string& partition, std::size_t output) {
  RankSetting setting;
  setting.layers = layers;
  setting.width = width;
  setting.heads = heads;
  setting.positions = partition.size();
  setting.partition = partition;
  setting.output_position = output;
  return setting;
}

}  // namespace fathom::exact
