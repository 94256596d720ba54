#include "exact/separation_rank.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "exact/attention_setting.h"
#include "exact/field_rank.h"
#include "exact/partition.h"

namespace fathom::exact {
namespace {

RankSetting balanced(std::size_t layers, std::size_t width, std::size_t heads,
                     std::size_t positions) {
  return attention(layers, width, heads, parse_partition("left-right", positions), 0);
}

void expect_rank(const RankSetting& setting, std::size_t rank, std::size_t rmax) {
  const RankResult result = compute_rank(setting);
  EXPECT_EQ(result.rank, rank) << setting.key();
  EXPECT_EQ(result.rmax, rmax) << setting.key();
  EXPECT_EQ(result.status, result.bound == rank ? RankStatus::exact : RankStatus::generic);
  EXPECT_LE(result.bound, rmax);
  EXPECT_GE(result.primes.size(), 2u);
}

TEST(SeparationRank, OneLayerHasRankWidthPlusOne) {
  for (std::size_t width = 1; width <= 8; ++width) {
    for (std::size_t heads = 1; heads <= width; ++heads) {
      if (width % heads != 0) continue;
      for (const std::size_t positions : {2u, 4u, 6u}) {
        expect_rank(balanced(1, width, heads, positions), width + 1, width + 1);
      }
    }
  }
}

TEST(SeparationRank, TwoAndThreeLayersAsTabled) {
  expect_rank(balanced(2, 2, 1, 2), 15, 15);
  expect_rank(balanced(2, 2, 2, 2), 15, 15);
  expect_rank(balanced(2, 3, 1, 2), 35, 35);
  expect_rank(balanced(2, 3, 3, 2), 35, 35);
  expect_rank(balanced(2, 4, 1, 2), 70, 70);
  expect_rank(balanced(2, 4, 2, 2), 70, 70);
  expect_rank(balanced(2, 4, 4, 2), 69, 70);
  for (const std::size_t positions : {4u, 6u}) {
    expect_rank(balanced(2, 2, 1, positions), 18, 18);
    expect_rank(balanced(2, 2, 2, positions), 17, 18);
    expect_rank(balanced(2, 3, 1, positions), 49, 49);
    expect_rank(balanced(2, 3, 3, positions), 43, 49);
    expect_rank(balanced(2, 4, 1, positions), 110, 110);
    expect_rank(balanced(2, 4, 2, positions), 107, 110);
    expect_rank(balanced(2, 4, 4, positions), 85, 110);
  }
  for (const std::size_t positions : {2u, 4u, 6u})
    expect_rank(balanced(3, 1, 1, positions), 14, 14);
  expect_rank(balanced(3, 2, 1, 4), 232, 232);
  expect_rank(balanced(2, 8, 1, 16), 999, 999);
}

/// Proposition 1: every balanced partition and every output position, from the definition.
void expect_one_rank(std::size_t layers, std::size_t width, std::size_t heads,
                     std::size_t positions) {
  RankOptions options;
  options.method = Method::direct;
  const std::size_t expected = compute_rank(balanced(layers, width, heads, positions)).rank;
  for (const std::string& partition : balanced_partitions(positions)) {
    if (partition.front() == '1') continue;
    for (std::size_t output = 0; output < positions; ++output) {
      const RankSetting setting = attention(layers, width, heads, partition, output);
      EXPECT_EQ(compute_rank(setting, options).rank, expected) << setting.key();
    }
  }
}

TEST(SeparationRank, PartitionDoesNotMatterBidirectionally) {
  expect_one_rank(1, 4, 2, 4);
  expect_one_rank(2, 2, 1, 4);
  expect_one_rank(2, 2, 2, 4);
  expect_one_rank(2, 3, 1, 4);
  expect_one_rank(2, 3, 3, 4);
  expect_one_rank(3, 2, 1, 4);
  expect_one_rank(3, 2, 2, 4);
  expect_one_rank(2, 3, 1, 6);
  expect_one_rank(2, 4, 2, 6);
  expect_one_rank(3, 2, 2, 6);
}

TEST(SeparationRank, CausalMasksBreakPartitionInvariance) {
  const auto causal_rank = [](std::size_t layers, std::size_t width, const char* partition) {
    RankSetting setting = attention(layers, width, 1, partition, 3);
    setting.causal = true;
    const RankResult result = compute_rank(setting);
    EXPECT_NE(result.status, RankStatus::at_least);
    EXPECT_LE(result.rank, result.rmax);
    return result.rank;
  };
  EXPECT_EQ(causal_rank(2, 2, "0011"), 18u);
  EXPECT_EQ(causal_rank(2, 2, "0101"), 37u);
  EXPECT_EQ(causal_rank(2, 2, "0110"), 26u);
  EXPECT_EQ(causal_rank(2, 3, "0011"), 47u);
  EXPECT_EQ(causal_rank(2, 3, "0101"), 103u);
  EXPECT_EQ(causal_rank(2, 3, "0110"), 68u);
  EXPECT_EQ(causal_rank(3, 2, "0011"), 555u);
  EXPECT_EQ(causal_rank(3, 2, "0101"), 1172u);
  EXPECT_EQ(causal_rank(3, 2, "0110"), 1094u);
}

TEST(SeparationRank, CausalPositionsBehindTheOutputCarryNothing) {
  RankSetting setting = attention(2, 2, 1, "0011", 1);
  setting.causal = true;
  const RankResult result = compute_rank(setting);
  EXPECT_EQ(result.rank, 1u);
  EXPECT_EQ(result.status, RankStatus::exact);
}

TEST(SeparationRank, ResidualsLeaveTheRankUnchanged) {
  struct Case {
    std::size_t layers, width, heads, rank;
  };
  for (const Case& c :
       {Case{1, 2, 1, 3}, Case{1, 3, 1, 4}, Case{1, 4, 2, 5}, Case{2, 2, 1, 18}, Case{2, 2, 2, 17},
        Case{2, 3, 1, 49}, Case{2, 3, 3, 43}, Case{2, 4, 1, 110}, Case{3, 2, 1, 232}}) {
    RankSetting setting = balanced(c.layers, c.width, c.heads, 2 * c.width);
    setting.residual = true;
    const RankResult result = compute_rank(setting);
    EXPECT_EQ(result.rank, c.rank) << setting.key();
    EXPECT_FALSE(result.split);
  }
}

TEST(SeparationRank, UnbalancedPartitions) {
  const std::size_t two_layers[] = {39, 49, 49, 49, 43};
  const std::size_t two_layers_bound[] = {41, 49, 49, 49, 43};
  const std::size_t three_layers[] = {125, 232, 232, 232, 137};
  const std::size_t three_layers_bound[] = {125, 232, 232, 232, 140};
  for (std::size_t a = 1; a <= 5; ++a) {
    const std::string partition = std::string(a, '0') + std::string(6 - a, '1');
    expect_rank(attention(2, 3, 1, partition, 0), two_layers[a - 1], two_layers_bound[a - 1]);
    expect_rank(attention(3, 2, 1, partition, 0), three_layers[a - 1], three_layers_bound[a - 1]);
  }
}

TEST(SeparationRank, EmbeddingRankActsAsWidth) {
  for (const std::size_t layers : {2u, 3u}) {
    for (std::size_t rank = 1; rank <= (layers == 2 ? 4u : 2u); ++rank) {
      const RankResult free = compute_rank(balanced(layers, rank, 1, 2 * rank));
      for (const std::size_t width : {rank + 1, std::size_t{8}}) {
        for (const std::size_t heads : {1u, 2u}) {
          if (width % heads != 0) continue;
          RankSetting setting = balanced(layers, width, heads, 2 * rank);
          setting.embedding_rank = rank;
          expect_rank(setting, free.rank, free.rank);
        }
      }
    }
  }
}

TEST(SeparationRank, SaturationIsSharpAndLargerGridsAddNothing) {
  const RankSetting setting = balanced(2, 3, 1, 6);  // rank 49
  for (const std::size_t side : {1u, 20u, 48u, 49u, 50u, 98u, 196u}) {
    auto matrix = sample_matrices(setting, Method::gram, 8388593, 1, {side}).front();
    EXPECT_EQ(rank_mod_p(matrix, side, side, 8388593), std::min<std::size_t>(side, 49));
    RankOptions options;
    options.split = false;
    options.max_side = side;
    const RankResult result = compute_rank(setting, options);
    EXPECT_EQ(result.rank, std::min<std::size_t>(side, 49));
    EXPECT_EQ(result.status, side >= 49 ? RankStatus::exact : RankStatus::at_least);
  }
}

TEST(SeparationRank, EveryDegreeBlockStaysWithinItsBoundOnLargerGrids) {
  for (const RankSetting& setting :
       {balanced(2, 4, 1, 8), balanced(2, 4, 4, 8), balanced(3, 2, 2, 4),
        attention(2, 3, 1, "011111", 0), attention(3, 3, 1, "0111", 0)}) {
    const auto bounds = proved_bounds(setting);
    std::vector<std::size_t> sides;
    for (const mpz_class& bound : structural_bounds(setting)) sides.push_back(bound.get_ui() + 9);
    auto matrices = sample_matrices(setting, Method::gram, 8388593, 3, sides);
    for (std::size_t k = 0; k < sides.size(); ++k) {
      EXPECT_LE(rank_mod_p(matrices[k], sides[k], sides[k], 8388593), bounds[k]) << setting.key();
    }
  }
}

TEST(SeparationRank, HeadsMeetTheHeadBoundBlockByBlock) {
  for (std::size_t width = 2; width <= 7; ++width) {
    for (std::size_t heads = 2; heads <= width; ++heads) {
      if (width % heads != 0) continue;
      const RankResult result = compute_rank(balanced(2, width, heads, 2 * width));
      EXPECT_EQ(result.status, RankStatus::exact);
      EXPECT_LT(result.rank, result.rmax);
      for (const BlockResult& block : result.blocks) {
        EXPECT_EQ(block.proved, block.rank);
        EXPECT_EQ(block.bound, block.side);  // the grid left room for more
      }
    }
  }
  EXPECT_EQ(compute_rank(balanced(3, 2, 2, 4)).rank, 215u);
  EXPECT_EQ(compute_rank(balanced(3, 3, 3, 6)).rank, 2441u);
}

TEST(SeparationRank, WholeAndSplitAndEverySeedAgree) {
  for (const RankSetting& setting :
       {balanced(2, 4, 2, 4), balanced(3, 2, 2, 4), balanced(2, 5, 5, 10)}) {
    const RankResult split = compute_rank(setting);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      RankOptions options;
      options.split = false;
      options.seed = seed;
      EXPECT_EQ(compute_rank(setting, options).rank, split.rank) << setting.key();
    }
    RankSetting other = setting;
    other.output_component = setting.width - 1;
    EXPECT_EQ(compute_rank(other).rank, split.rank);
  }
}

TEST(SeparationRank, ErrorProbabilityIsTheStatedProduct) {
  const RankResult exact = compute_rank(balanced(2, 3, 1, 6));
  EXPECT_EQ(exact.error_probability, 0);
  // One position on side A: the block of degree 2 falls short by two; deg y = 4 C + 2 C + 1 = 25.
  const RankResult generic = compute_rank(attention(2, 3, 1, "011111", 0));
  ASSERT_EQ(generic.primes.size(), 2u);
  double expected = 0;
  for (const BlockResult& block : generic.blocks) {
    if (block.proved == block.rank) continue;
    const double minor = static_cast<double>(block.rank + 1) * 25;
    expected += (minor / generic.primes[0]) * (minor / generic.primes[1]);
  }
  EXPECT_GT(expected, 0);
  EXPECT_NEAR(generic.error_probability / expected, 1, 1e-12);
}

TEST(SeparationRank, PrimesThatDisagreeCallForMore) {
  // Modulo 59 a full block of side 6 is singular once in 59 draws, so two primes often disagree.
  std::size_t called_for_more = 0;
  std::size_t right = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RankOptions options;
    options.seed = seed;
    options.prime_limit = 60;
    const RankResult result = compute_rank(balanced(2, 2, 2, 4), options);
    EXPECT_LE(result.rank, 17u) << seed;
    if (result.rank == 17) {
      ++right;
    } else {  // so small a field may fool two primes, and the answer owns up to it
      EXPECT_EQ(result.status, RankStatus::generic);
      EXPECT_EQ(result.error_probability, 1);
    }
    called_for_more += result.primes.size() > 2;
  }
  EXPECT_GE(called_for_more, 2u);
  EXPECT_GE(right, 50u);
}

TEST(SeparationRank, RefusesBeforeWork) {
  EXPECT_THROW(compute_rank(attention(2, 4, 3, "0011", 0)), ConfigError);
  EXPECT_THROW(compute_rank(attention(2, 4, 1, "0011", 4)), ConfigError);
  EXPECT_THROW(compute_rank(attention(2, 4, 1, "0000", 0)), ConfigError);
  EXPECT_THROW(compute_rank(balanced(9, 2, 1, 4)), ConfigError);
  EXPECT_THROW(compute_rank(balanced(4, 8, 1, 16)), ConfigError);  // does not fit any memory
  EXPECT_THROW(parse_partition("left-right", 5), ConfigError);
  EXPECT_THROW(balanced_partitions(7), ConfigError);
  RankOptions small;
  small.memory_bytes = 1e6;
  try {
    compute_rank(balanced(2, 8, 1, 16), small);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("999 rows"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("1.00 MB"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace fathom::exact
