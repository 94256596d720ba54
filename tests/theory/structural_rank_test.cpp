#include "theory/structural_rank.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "theory/log_binomial.h"

namespace fathom::theory {
namespace {

TEST(LogBinomial, MatchesSmallIntegersAndHugeArguments) {
  EXPECT_NEAR(std::exp(log_binomial(7, 3)), 120, 1e-10);  // binom(10, 3)
  EXPECT_NEAR(std::exp(log_binomial(1, 1)), 2, 1e-13);
  EXPECT_EQ(log_binomial(0, 5), 0);
  // binom(m+2, 2) = (m+1)(m+2)/2 ~ m^2/2, where lgamma differences would lose every digit.
  EXPECT_NEAR(log_binomial(1e40, 2), 2 * std::log(1e40) - std::log(2.0), 1e-11);
}

TEST(StructuralRank, HandCountForTwoLayersWidthOne) {
  // d = 1: every space is one-dimensional, so R_max = C + 1.
  EXPECT_EQ(structural_rank({2, 1, 3, 3}), 5);
  EXPECT_EQ(structural_rank({3, 1, 1, 1}), 14);
}

// Closed form for L = 2, at least two positions a side, d >= 2: 1 + D + D(D+1)/2 + dD + d.
TEST(StructuralRank, TwoLayerClosedForm) {
  for (std::int64_t d = 2; d <= 12; ++d) {
    const std::int64_t D = d * (d + 1) / 2;
    EXPECT_EQ(structural_rank({2, d, d, d}), 1 + D + D * (D + 1) / 2 + d * D + d) << d;
  }
}

struct Case {
  GramSetting setting;
  long expected;
};

// Values with few positions, listed in the literature notes of docs/theory.md.
TEST(StructuralRank, FewPositionsAndUnbalancedSides) {
  const std::vector<Case> cases{
      {{2, 2, 1, 1}, 15},    {{2, 2, 2, 2}, 18},     {{2, 3, 1, 1}, 35},
      {{2, 3, 2, 2}, 49},    {{2, 4, 1, 1}, 70},     {{2, 4, 2, 2}, 110},
      {{2, 3, 1, 5}, 41},    {{2, 3, 5, 1}, 43},     {{3, 2, 1, 5}, 125},
      {{3, 2, 2, 4}, 232},   {{3, 2, 5, 1}, 140},    {{2, 16, 16, 16}, 11645},
      {{3, 4, 4, 4}, 31460}, {{4, 3, 3, 3}, 679581}, {{3, 5, 5, 5}, 248064}};
  for (const Case& c : cases) {
    EXPECT_EQ(structural_rank(c.setting), c.expected)
        << c.setting.layers << " " << c.setting.width << " " << c.setting.positions_a << " "
        << c.setting.positions_b;
  }
}

TEST(StructuralRank, ClosedFormEqualsTheSumOfBlocks) {
  for (std::int64_t L = 1; L <= 4; ++L) {
    for (std::int64_t d = 1; d <= 4; ++d) {
      const SaturatedRank closed = saturated_structural_rank(L, d);
      const mpz_class sum = structural_rank({L, d, d, d});
      ASSERT_TRUE(closed.exact.has_value());
      EXPECT_EQ(*closed.exact, sum) << L << " " << d;
      EXPECT_NEAR(closed.log3, std::log(sum.get_d()) / std::log(3.0), 0.02) << L << " " << d;
    }
  }
}

TEST(StructuralRank, LogarithmsAtScale) {
  const double expected[] = {6.3, 23.3, 72.0, 200.4, 551.3, 1474.7, 3889.6, 10032.5};
  for (int L = 1; L <= 8; ++L) {
    EXPECT_NEAR(saturated_structural_rank(L, 1000).log3, expected[L - 1], 0.051) << L;
  }
  EXPECT_NEAR(saturated_structural_rank(8, 1000).log3, 10032.48, 0.005);
  const double gpt3 = saturated_structural_rank(96, 12288).log3;
  EXPECT_TRUE(std::isfinite(gpt3));
  EXPECT_GT(gpt3, 1e9);  // about D L = 7.5e7 * 96 less D log3 D
}

TEST(StructuralRank, RefusesSumsThatCannotFinish) {
  EXPECT_THROW(structural_rank({12, 40, 20, 20}), ConfigError);
  EXPECT_THROW(structural_rank({2, 0, 1, 1}), ConfigError);
}

}  // namespace
}  // namespace fathom::theory
