// The forecast of a rank: operations by hand, and growth that stops where the limit says.
#include "exact/rank_cost.h"

#include <gtest/gtest.h>

#include "exact/attention_setting.h"
#include "exact/partition.h"

namespace fathom::exact {
namespace {

RankSetting recurrent_setting(std::size_t positions) {
  RankSetting setting;
  setting.family = Family::recurrent;
  setting.layers = 3;
  setting.width = 3;
  setting.inputs = 3;
  setting.positions = positions;
  setting.partition = parse_partition("left-right", positions);
  return setting;
}

TEST(RankCost, CountsValuesAndEliminations) {
  // 100^2 values of 2 * 10 * 3 * 9 multiply-adds at 0.5 ns, and 100^3 steps at 0.03 ns.
  EXPECT_NEAR(grid_seconds(recurrent_setting(10), Method::direct, {100}),
              1e4 * 540 * 5e-10 + 1e6 * 3e-11, 1e-12);
  // Attention by Gram matrices, L = 2, d = 4, H = 4: five nodes, 20^2 values of 16 * 4 * 2
  // multiply-adds at 0.4 ns; four eliminations; 40 assignments of 8 positions.
  const RankSetting setting = attention(2, 4, 4, parse_partition("left-right", 8), 0);
  EXPECT_NEAR(grid_seconds(setting, Method::gram, {1, 10, 20, 10, 4}),
              5 * 400 * 128 * 4e-10 + (1 + 1000 + 8000 + 1000 + 64) * 3e-11 + 40 * 8 * 16 * 1e-8,
              1e-12);
}

TEST(RankCost, GridsGrowOnlyWhereBoundsAreFar) {
  EXPECT_FALSE(grids_grow(attention(2, 2, 1, "0011", 0)));
  EXPECT_TRUE(grids_grow(recurrent_setting(4)));
  const RankSetting near = attention(2, 2, 1, "0011", 0);
  EXPECT_EQ(search_cost(near, {}).seconds, search_cost(near, {}, 4096).seconds);
  // Sides 64 and 128, two primes.
  const RankSetting far = recurrent_setting(10);
  EXPECT_NEAR(
      search_cost(far, {}, 128).seconds,
      2 * (grid_seconds(far, Method::direct, {64}) + grid_seconds(far, Method::direct, {128})),
      1e-9);
}

TEST(RankCost, TheSideStaysWithinTheLimit) {
  const RankSetting setting = recurrent_setting(10);
  const RankCost limit{10, 1e9};
  const std::size_t side = side_within(setting, {}, limit);
  EXPECT_LE(search_cost(setting, {}, side).seconds, 10);
  EXPECT_GT(search_cost(setting, {}, 2 * side).seconds, 10);
  EXPECT_EQ(side_within(setting, {}, {0, 1e9}), 64u);  // the first grid is the least there is
  RankOptions options;
  options.max_side = side_within(setting, {}, {0.1, 1e9});
  const RankResult found = compute_rank(setting, options);
  EXPECT_EQ(found.status, RankStatus::at_least);
  EXPECT_EQ(found.rank, options.max_side);
}

}  // namespace
}  // namespace fathom::exact
