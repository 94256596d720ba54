#include "theory/separation_bounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace fathom::theory {
namespace {

double pow10(std::optional<double> x) {
  return std::pow(10.0, x.value());
}

TEST(SeparationBounds, ThresholdAndRegime) {
  EXPECT_NEAR(depth_threshold(12288), 8.57, 0.005);
  EXPECT_NEAR(depth_threshold(128), 4.42, 0.005);
  EXPECT_EQ(regime({6, 1000, 16}), Regime::depth_efficient);  // log3 1000 = 6.29
  EXPECT_EQ(regime({7, 1000, 16}), Regime::depth_inefficient);
}

// d = 1000, H = 16, L = 6: the example under Corollary 1. Eq. (7) as printed does not give the
// printed widths 2e17 and 2e5; the multiset reading does, after rounding.
TEST(SeparationBounds, CorollaryOneExampleInBothReadings) {
  const AnalysedNetwork deep{6, 1000, 16};
  EXPECT_NEAR(*log3_lower_printed(deep), 133.01, 0.005);
  EXPECT_NEAR(*log3_lower_multiset(deep), 144.12, 0.005);
  const MatchingWidth two = matching_width(deep, 2);
  const MatchingWidth three = matching_width(deep, 3);
  const MatchingWidth four = matching_width(deep, 4);
  EXPECT_NEAR(pow10(two.log10_width_printed), 7.3e15, 0.05e15);
  EXPECT_NEAR(pow10(three.log10_width_printed), 7.6e4, 0.05e4);
  EXPECT_NEAR(pow10(two.log10_width_multiset), 1.55e17, 0.005e17);
  EXPECT_NEAR(pow10(three.log10_width_multiset), 1.95e5, 0.005e5);
  EXPECT_NEAR(pow10(four.log10_width_printed), 23, 0.5);
  EXPECT_NEAR(pow10(four.log10_width_multiset), 36, 0.5);
  EXPECT_THROW(matching_width(deep, 6), ConfigError);
}

TEST(SeparationBounds, TheoremOneByHand) {
  // d = 10, H = 1, L = 2: k = 1, so the bounds are (d-H)/2 = 4.5 and (d+H)^4 = 14641.
  const SeparationBounds bounds = separation_bounds({2, 10, 1});
  EXPECT_EQ(bounds.theorem, 1);
  EXPECT_NEAR(std::pow(3.0, *bounds.log3_lower), 4.5, 1e-9);
  EXPECT_NEAR(std::pow(3.0, bounds.log3_upper), 14641, 1e-6);
}

TEST(SeparationBounds, RefusesImpossibleNetworks) {
  EXPECT_THROW(separation_bounds({6, 10, 16}), ConfigError);
  EXPECT_THROW(separation_bounds({0, 8, 1}), ConfigError);
  EXPECT_THROW(separation_bounds({601, 8, 1}), ConfigError);
}

TEST(SeparationBounds, PrintedTheorem2ConflictsWithStructuralRank) {
  struct Case {
    std::int64_t d, L;
    double rmax, upper;
  };
  for (const Case& c :
       {Case{8, 7, 122, 113}, Case{16, 6, 196, 165}, Case{64, 6, 575, 473}, Case{100, 6, 717, 652},
        Case{512, 7, 3224, 2801}, Case{1000, 8, 10032, 6242}}) {
    const SeparationBounds bounds = separation_bounds({c.L, c.d, 1});
    EXPECT_NEAR(bounds.structural.log3, c.rmax, 0.51) << c.d;
    EXPECT_NEAR(bounds.log3_upper, c.upper, 0.51) << c.d;
    EXPECT_TRUE(bounds.printed_upper_below_structural);
  }
  EXPECT_FALSE(separation_bounds({2, 64, 1}).printed_upper_below_structural);
}

TEST(SeparationBounds, LowerBoundIsAbsentWhenEveryCoordinateIsAHead) {
  EXPECT_FALSE(separation_bounds({2, 64, 64}).log3_lower.has_value());
  EXPECT_FALSE(matching_width({3, 64, 64}, 2).log10_width_printed.has_value());
}

// The text at hand prints c2 = -2d log3 (d/2) sqrt(2 sqrt(2e)) + log3 d. Near the threshold that
// reading would bound a rank by less than 1, and the one taken does not.
TEST(SeparationBounds, TheReadingOfTheoremTwoStaysAboveOne) {
  const double d = 1000, L = depth_threshold(1000);
  const auto upper = [&](double divisor) {
    const double log3_ratio = std::log(d / divisor) / std::log(3.0);
    return 2 * d * L + L - 2 * d * log3_ratio + depth_threshold(1000);
  };
  const double root = std::sqrt(2 * std::sqrt(2 * std::exp(1.0)));
  EXPECT_NEAR(upper(2 / root), -127, 0.1);
  EXPECT_GT(upper(2 * root), 0);
  EXPECT_GT(upper(kTheorem2Root), upper(2 * root));  // the weaker of the two that are possible
}

TEST(BoundsReport, SaysWhenHeadsDoNotDivideTheWidth) {
  const BoundsReport real = bounds_report({6, 1000, 16}, {2, 4});
  ASSERT_EQ(real.remarks.size(), 1u);
  EXPECT_NE(real.remarks[0].find("d/H = 62.5"), std::string::npos) << real.remarks[0];
  EXPECT_FALSE(real.matches[0].proves_nothing);
  EXPECT_TRUE(real.matches[1].proves_nothing);  // 36 wide, below 1000
  EXPECT_FALSE(real.shallow.has_value());
  EXPECT_TRUE(bounds_report({6, 1024, 16}, {}).remarks.empty());
}

TEST(BoundsReport, CarriesTheConflictAndTheCorollary) {
  const BoundsReport report = bounds_report({7, 8, 1}, {});
  ASSERT_EQ(report.remarks.size(), 1u);
  EXPECT_NE(report.remarks[0].find("31,456 of 31,460"), std::string::npos) << report.remarks[0];
  ASSERT_TRUE(report.shallow.has_value());
  EXPECT_EQ(report.shallow->shallower, report.shallow->layers < 7);
}

TEST(SeparationBounds, WorksAtGpt3Size) {
  const SeparationBounds bounds = separation_bounds({96, 12288, 96});
  EXPECT_EQ(bounds.theorem, 2);
  EXPECT_TRUE(std::isfinite(*bounds.log3_lower));
  EXPECT_TRUE(std::isfinite(bounds.log3_upper));
  EXPECT_LT(*bounds.log3_lower, bounds.log3_upper);
  EXPECT_TRUE(std::isfinite(bounds.structural.log3));
}

TEST(SeparationBounds, CorollaryTwoIsTheSmallestBetaTheBoundsAllow) {
  const AnalysedNetwork deep{48, 1024, 16};
  const ShallowEquivalent shallow = shallow_equivalent(deep);
  EXPECT_NEAR(shallow.layers, depth_threshold(1024) + shallow.beta2, 1e-9);
  EXPECT_LT(shallow.layers, 48);
  EXPECT_NEAR(shallow.beta1 * 48, depth_threshold(1024), 1e-9);
  // At that depth the width is 3^depth and Theorem 1 gives 3^(L-2) (2 - log3 2 + log3(1 - H/d)).
  const double log3_2 = std::log(2.0) / std::log(3.0);
  const double lower = std::pow(3.0, shallow.layers - 2) * (2 - log3_2);
  EXPECT_NEAR(lower / separation_bounds(deep).log3_upper, 1, 0.01);
  EXPECT_THROW(shallow_equivalent({3, 1024, 16}), ConfigError);
}

}  // namespace
}  // namespace fathom::theory
