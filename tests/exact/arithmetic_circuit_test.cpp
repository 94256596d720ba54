#include <gtest/gtest.h>

#include <cmath>

#include "exact/partition.h"
#include "exact/separation_rank.h"

namespace fathom::exact {
namespace {

RankResult conv_rank(std::size_t channels, std::size_t inputs, std::size_t positions,
                     const char* partition, Pooling pooling = Pooling::contiguous) {
  RankSetting setting;
  setting.family = Family::conv;
  setting.width = channels;
  setting.inputs = inputs;
  setting.positions = positions;
  setting.partition = parse_partition(partition, positions);
  setting.pooling = pooling;
  return compute_rank(setting);
}

RankResult recurrent_rank(std::size_t layers, std::size_t channels, std::size_t inputs,
                          std::size_t positions, const char* partition) {
  RankSetting setting;
  setting.family = Family::recurrent;
  setting.layers = layers;
  setting.width = channels;
  setting.inputs = inputs;
  setting.positions = positions;
  setting.partition = parse_partition(partition, positions);
  return compute_rank(setting);
}

TEST(ConvolutionalCircuit, PoolingGeometryDecidesWhatCouples) {
  for (const auto& [channels, inputs] :
       std::vector<std::pair<std::size_t, std::size_t>>{{2, 2}, {2, 3}, {3, 2}, {3, 3}, {4, 4}}) {
    for (const std::size_t positions : {4u, 8u}) {
      const double most = std::pow(static_cast<double>(std::min(channels, inputs)),
                                   static_cast<double>(positions) / 2);
      if (most > 600) continue;
      const auto expected = static_cast<std::size_t>(most);
      const RankResult interleaved = conv_rank(channels, inputs, positions, "interleaved");
      EXPECT_EQ(interleaved.rank, expected);
      EXPECT_EQ(interleaved.status, RankStatus::exact);
      const RankResult left_right = conv_rank(channels, inputs, positions, "left-right");
      EXPECT_EQ(left_right.rank, channels);
      EXPECT_EQ(left_right.status, RankStatus::exact);
      EXPECT_EQ(conv_rank(channels, inputs, positions, "left-right", Pooling::mirror).rank,
                expected);
    }
  }
}

TEST(RecurrentCircuit, DepthLiftsTheStartEndRank) {
  for (const auto& [channels, inputs] :
       std::vector<std::pair<std::size_t, std::size_t>>{{2, 2}, {3, 2}, {2, 3}, {3, 3}}) {
    const RankResult shallow = recurrent_rank(1, channels, inputs, 6, "left-right");
    EXPECT_EQ(shallow.rank, std::min(channels, inputs * inputs * inputs));
    EXPECT_EQ(shallow.status, RankStatus::exact);
    const RankResult deep = recurrent_rank(2, channels, inputs, 6, "left-right");
    // arXiv 1710.09431: at least the multiset coefficient of min(M, R) and T/2
    const std::size_t n = std::min(channels, inputs);
    const std::size_t multiset = n == 2 ? 4 : 10;  // binom(n + 2, 3)
    EXPECT_GE(deep.rank, multiset);
    EXPECT_GT(deep.rank, shallow.rank);
  }
}

}  // namespace
}  // namespace fathom::exact
