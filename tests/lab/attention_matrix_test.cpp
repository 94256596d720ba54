// Reachable attention matrices, fits of heads and the softmax hull, by hand and by other means.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "lab/attention_matrices/attention_fit.h"
#include "lab/attention_matrices/reachable_rank.h"
#include "lab/attention_matrices/softmax_hull.h"

namespace fathom::lab {
namespace {

using exact::PrimeField;

const PrimeField kScoreField(8388593);

TEST(ReachableRank, ShiftsPerRowDoNotCount) {
  // Rows that differ by shifts only: one softmax row repeated, rank 1.
  const FieldMatrix shifted{{1, 5, 2}, {11, 15, 12}, {101, 105, 102}};
  EXPECT_EQ(shift_rank(shifted, kScoreField), 1u);
  // Uniform attention needs no head at all.
  EXPECT_EQ(shift_rank({{7, 7}, {3, 3}}, kScoreField), 0u);
  // [[1,0,0],[0,1,0],[0,0,1]]: differences (1,0), (-1,1), (0,-1) have rank 2.
  EXPECT_EQ(shift_rank({{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, kScoreField), 2u);
}

TEST(ReachableRank, GenericThresholds) {
  for (std::size_t n = 2; n <= 20; ++n) {
    const ReachableSize free = reachable_size(n, false, 1);
    EXPECT_EQ(free.lower, n - 1);
    const ReachableSize causal = reachable_size(n, true, 1);
    EXPECT_EQ(causal.lower, n / 2) << n;
    EXPECT_EQ(causal.upper, n / 2) << n;
    EXPECT_EQ(singular_rank(random_target(n, false, n)), n - 1);
  }
}

TEST(ReachableRank, ATriangleIsCompletedExactlyAndNotBelowItsBlocks) {
  const FieldMatrix scores = random_scores(9, kScoreField, 4);
  FieldMatrix given(8, FieldVector(8, 0));
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t j = 0; j < 8; ++j) given[i][j] = scores[i + 1][j];
  }
  const auto found = complete_triangle(given, 4, kScoreField);
  ASSERT_TRUE(found.has_value());
  const FieldMatrix product = field_product(found->left, found->right, kScoreField);
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t j = 0; j <= i; ++j) EXPECT_EQ(product[i][j], given[i][j]);
  }
  EXPECT_FALSE(complete_triangle(given, 3, kScoreField).has_value());
}

TEST(HeadFit, GradientAgainstFiniteDifferences) {
  for (const bool causal : {false, true}) {
    const AttentionTarget target = random_target(5, causal, 3);
    const RandomStream random(1, 2);
    std::vector<double> scores(25);
    for (std::size_t i = 0; i < 25; ++i) scores[i] = random.normal(i);
    std::vector<double> gradient(25);
    mean_divergence(target, scores, &gradient);
    for (std::size_t i = 0; i < 25; ++i) {
      std::vector<double> up = scores;
      std::vector<double> down = scores;
      up[i] += 1e-5;
      down[i] -= 1e-5;
      const double slope = (mean_divergence(target, up) - mean_divergence(target, down)) / 2e-5;
      EXPECT_NEAR(gradient[i], slope, 1e-9);
    }
  }
}

TEST(HeadFit, DivergenceOfAKnownPair) {
  // P = (3/4, 1/4) in both rows; equal scores give (1/2, 1/2).
  const AttentionTarget target{2, false, {0.75, 0.25, 0.75, 0.25}};
  EXPECT_NEAR(mean_divergence(target, {1, 1, 2, 2}), 0.75 * std::log(1.5) + 0.25 * std::log(0.5),
              1e-15);
  EXPECT_NEAR(mean_divergence(target, {std::log(3.0), 0, 5 + std::log(3.0), 5}), 0, 1e-15);
}

TEST(HeadFit, ReachesTheTargetAtTheThresholdAndStallsBelow) {
  const AttentionTarget free = random_target(8, false, 1);
  EXPECT_LT(fit_head(free, 7, 4000, 1).divergence, 1e-9);
  EXPECT_GT(fit_head(free, 4, 4000, 1).divergence, 1e-3);
  const AttentionTarget causal = random_target(8, true, 1);
  EXPECT_LT(fit_head(causal, 4, 4000, 1).divergence, 1e-9);
  EXPECT_GT(fit_head(causal, 2, 4000, 1).divergence, 1e-3);
}

TEST(Hull, FloorsByHand) {
  // (2, -1): inputs (1,1), (-1,-1) give +-1 and want +-1 of +-g; the others want +-3, at most g.
  // 2 (g - 1)^2 + 2 (3 - g)^2 is least at g = 2: 4, over four inputs 1.
  double gain = 0;
  EXPECT_DOUBLE_EQ(softmax_floor({2, -1}, &gain), 1);
  EXPECT_DOUBLE_EQ(gain, 2);
  // (1, -1): 2 g^2 + 2 (2 - g)^2, least at g = 1: 4, over four inputs 1.
  EXPECT_DOUBLE_EQ(softmax_floor({1, -1}), 1);
  // Inside the simplex, or a multiple of it: no floor.
  EXPECT_DOUBLE_EQ(softmax_floor({0.3, 0.7}), 0);
  EXPECT_DOUBLE_EQ(softmax_floor({2, 3, 1}), 0);
}

TEST(Hull, FloorAgainstASearchOverGains) {
  const RandomStream random(5, 5);
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    std::vector<double> weights;
    const std::size_t n = 2 + trial % 5;
    for (std::size_t j = 0; j < n; ++j) weights.push_back(2 * random.normal(10 * trial + j));
    double least = 1e300;
    for (double gain = -20; gain <= 20; gain += 0.002) {
      double error = 0;
      for (std::size_t bits = 0; bits < std::size_t{1} << n; ++bits) {
        double target = 0;
        double low = 1;
        double high = -1;
        for (std::size_t j = 0; j < n; ++j) {
          const double x = (bits >> j & 1) != 0 ? 1 : -1;
          target += weights[j] * x;
          low = std::min(low, x);
          high = std::max(high, x);
        }
        const double a = std::min(gain * low, gain * high);
        const double b = std::max(gain * low, gain * high);
        error += std::pow(std::max({0.0, a - target, target - b}), 2);
      }
      least = std::min(least, error / std::pow(2.0, static_cast<double>(n)));
    }
    EXPECT_NEAR(softmax_floor(weights), least, 1e-4 * (1 + least));
  }
}

TEST(Hull, NormalisedHeadsAndTwoHeadsExpressIt) {
  for (const std::vector<double>& weights :
       {std::vector<double>{2, -1}, {2, -1, 0}, {1, 1, -1, 0.5}, {-3, -2, 0}, {1, 0}}) {
    const HullResult found = measure_hull(weights);
    EXPECT_LT(found.normalised_error, 1e-12);
    EXPECT_LT(found.two_head_error, 1e-12);
  }
  EXPECT_THROW(measure_hull({1, 1}), ConfigError);
  EXPECT_THROW(measure_hull({1}), ConfigError);
  EXPECT_THROW(measure_hull(std::vector<double>(17, 1)), ConfigError);
}

}  // namespace
}  // namespace fathom::lab
