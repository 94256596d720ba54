// Many questions at once: the grid of a table, and every balanced partition of one network.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exact/separation_rank.h"

namespace fathom::exact {

/// Every combination is one setting, of attention networks.
struct RankGrid {
  std::vector<std::size_t> layers, widths;
  std::vector<std::size_t> heads;            // those that divide a width are used; empty: all
  std::vector<std::size_t> embedding_ranks;  // those up to the width; empty: no embedding
  std::vector<std::size_t> positions;        // empty: twice the input dimension
  std::vector<std::string> partitions;       // as parse_partition accepts them; the output is last
  std::vector<std::size_t> a_positions;      // or instead: sizes of side A, the output its first
  bool causal = false;
  bool residual = false;
};

/// ConfigError when the lists contradict each other or leave nothing.
std::vector<RankSetting> grid_settings(const RankGrid& grid);

/// `base` with every balanced partition, and with every output position when asked. One of each
/// complementary pair: exchanging A and B transposes the matrix.
std::vector<RankSetting> balanced_settings(const RankSetting& base, bool every_output);

/// The partitions, both of each complementary pair, by their rank. With every output position a
/// partition carries its own: "0011@2".
using PartitionGroups = std::map<std::size_t, std::vector<std::string>>;
PartitionGroups group_partitions(const std::vector<RankSetting>& settings,
                                 const std::vector<RankResult>& results, bool every_output);

}  // namespace fathom::exact
