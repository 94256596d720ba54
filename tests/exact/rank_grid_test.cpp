#include "exact/rank_grid.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "exact/rank_request.h"

namespace fathom::exact {
namespace {

std::vector<std::string> keys(const std::vector<RankSetting>& settings) {
  std::vector<std::string> list;
  for (const RankSetting& setting : settings) list.push_back(setting.key());
  return list;
}

TEST(RankGrid, TakesEveryHeadCountThatDividesTheWidth) {
  RankGrid grid;
  grid.layers = {2};
  grid.widths = {3, 4};
  EXPECT_EQ(keys(grid_settings(grid)),
            (std::vector<std::string>{"attention L=2 d=3 H=1 N=6 p=000111 i=5 c=0",
                                      "attention L=2 d=3 H=3 N=6 p=000111 i=5 c=0",
                                      "attention L=2 d=4 H=1 N=8 p=00001111 i=7 c=0",
                                      "attention L=2 d=4 H=2 N=8 p=00001111 i=7 c=0",
                                      "attention L=2 d=4 H=4 N=8 p=00001111 i=7 c=0"}));
}

TEST(RankGrid, SideAHoldsTheOutputWhereItsSizesAreListed) {
  RankGrid grid;
  grid.layers = {3};
  grid.widths = {2};
  grid.heads = {1};
  grid.positions = {4};
  grid.a_positions = {1, 3};
  EXPECT_EQ(keys(grid_settings(grid)),
            (std::vector<std::string>{"attention L=3 d=2 H=1 N=4 p=0111 i=0 c=0",
                                      "attention L=3 d=2 H=1 N=4 p=0001 i=0 c=0"}));
  grid.a_positions = {4};
  EXPECT_THROW(grid_settings(grid), ConfigError);
}

TEST(RankGrid, LeavesOutRanksAboveTheWidth) {
  RankGrid grid;
  grid.layers = {2};
  grid.widths = {2};
  grid.heads = {1};
  grid.embedding_ranks = {1, 2, 3};
  const auto settings = grid_settings(grid);
  ASSERT_EQ(settings.size(), 2u);
  EXPECT_EQ(settings[0].positions, 2u);  // twice the embedding rank
  EXPECT_EQ(settings[1].positions, 4u);
}

TEST(RankGrid, RefusesEmptyAndContradictoryGrids) {
  RankGrid grid;
  grid.layers = {2};
  EXPECT_THROW(grid_settings(grid), ConfigError);
  grid.widths = {3};
  grid.heads = {2};
  EXPECT_THROW(grid_settings(grid), ConfigError);
  grid.heads = {1};
  grid.partitions = {"left-right"};
  grid.a_positions = {1};
  EXPECT_THROW(grid_settings(grid), ConfigError);
  grid.a_positions = {};
  grid.widths = {5000};
  EXPECT_THROW(grid_settings(grid), ConfigError);
}

TEST(BalancedSettings, OneOfEachComplementaryPair) {
  RankRequest request;
  request.layers = 2;
  request.width = 2;
  const RankSetting base = resolve(request);
  const auto settings = balanced_settings(base, false);
  ASSERT_EQ(settings.size(), 3u);  // six balanced partitions of four positions
  for (const RankSetting& setting : settings) EXPECT_EQ(setting.partition.front(), '0');
  EXPECT_EQ(balanced_settings(base, true).size(), 12u);
}

TEST(BalancedSettings, GroupsHoldBothOfAPair) {
  RankRequest request;
  request.layers = 2;
  request.width = 2;
  const auto settings = balanced_settings(resolve(request), false);
  std::vector<RankResult> results(3);
  results[0].rank = results[2].rank = 7;
  results[1].rank = 9;
  const PartitionGroups groups = group_partitions(settings, results, false);
  EXPECT_EQ(groups.at(7), (std::vector<std::string>{"0011", "1100", "0110", "1001"}));
  EXPECT_EQ(groups.at(9), (std::vector<std::string>{"0101", "1010"}));
}

TEST(RankRequest, FillsWhatIsNotSaid) {
  RankRequest request;
  request.layers = 2;
  request.width = 3;
  const RankSetting plain = resolve(request);
  EXPECT_EQ(plain.positions, 6u);
  EXPECT_EQ(plain.output_position, 5u);
  EXPECT_EQ(plain.partition, "000111");
  request.embedding_rank = 2;
  EXPECT_EQ(resolve(request).positions, 4u);
  request = {};
  request.family = Family::conv;
  request.width = 4;
  EXPECT_EQ(resolve(request).positions, 8u);
  request.layers = 2;  // eight positions are pooled in three rounds
  EXPECT_THROW(resolve(request), ConfigError);
  EXPECT_THROW(resolve({}), ConfigError);
}

}  // namespace
}  // namespace fathom::exact
