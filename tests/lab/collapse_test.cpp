// Rank collapse: the stack against a hand count and MPFR, its two algorithms against each other,
// the statistics against small samples, and the verdict of the claim.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "lab/collapse/collapse_measure.h"
#include "lab/collapse/double_double.h"
#include "lab/collapse/path_decomposition.h"
#include "lab/collapse/split_stack.h"
#include "lab/collapse/stack.h"
#include "mpfr_real.h"

namespace fathom::lab {
namespace {

StackSpec small_spec() {
  StackSpec spec;
  spec.tokens = 5;
  spec.width = 6;
  spec.layers = 4;
  return spec;
}

StackSpec variant(bool causal, bool skip, bool norm, bool mlp, std::size_t window = 0) {
  StackSpec spec = small_spec();
  spec.causal = causal;
  spec.skip = skip;
  spec.norm = norm;
  spec.mlp = mlp;
  spec.window = window;
  return spec;
}

const std::vector<StackSpec> kVariants{
    variant(false, false, false, false), variant(true, false, false, false),
    variant(false, true, false, false),  variant(false, false, true, false),
    variant(false, false, false, true),  variant(false, true, true, true),
    variant(true, false, true, true),    variant(false, false, false, false, 2),
    variant(true, true, false, true, 3)};

TEST(Stack, OneLayerOfTwoTokensByHand) {
  StackSpec spec;
  spec.tokens = 2;
  spec.width = 1;
  spec.heads = 1;
  spec.layers = 1;
  StackDraw draw;
  draw.x = Matrix<double>(2, 1);
  draw.x.values = {2, -1};
  const auto one = [](double value) {
    Matrix<double> m(1, 1);
    m.values = {value};
    return m;
  };
  draw.layers = {{{{one(0.5), one(3), one(-1), one(4)}}, {}, {}}};
  // Scores 1.5 x_i x_j: row 1 sees (6, -3), row 2 (-3, 1.5); values -4 x_j = (-8, 4).
  const double a = 1 / (1 + std::exp(-9.0));
  const double b = 1 / (1 + std::exp(4.5));
  const double y1 = -8 * a + 4 * (1 - a);
  const double y2 = -8 * b + 4 * (1 - b);
  // Residual (y1 - y2)/2 and its negative: column sum |y1 - y2|, row sum |y1 - y2|/2.
  const double residual = std::sqrt(std::fabs(y1 - y2) * std::fabs(y1 - y2) / 2);
  const double size =
      std::sqrt((std::fabs(y1) + std::fabs(y2)) * std::max(std::fabs(y1), std::fabs(y2)));
  const auto course = collapse_course<DoubleDouble>(spec, draw);
  ASSERT_EQ(course.size(), 2u);
  EXPECT_NEAR(course[0], std::log10(std::sqrt(3 * 1.5) / std::sqrt(3 * 2)), 1e-14);
  EXPECT_NEAR(course[1], std::log10(residual / size), 1e-14);
}

TEST(Stack, NormalisedRowsHaveMeanZeroAndVarianceOne) {
  Matrix<double> x(1, 4);
  x.values = {1, 2, 3, 6};
  normalise_rows(x);
  const double deviation = std::sqrt((4 + 1 + 0 + 9) / 4.0);
  EXPECT_NEAR(x.at(0, 0), -2 / deviation, 1e-15);
  EXPECT_NEAR(x.at(0, 3), 3 / deviation, 1e-15);
}

TEST(Stack, DoubleDoubleAgreesWithMpfr) {
  for (const StackSpec& spec : kVariants) {
    const StackDraw draw = draw_stack(spec, 3);
    const auto found = collapse_course<DoubleDouble>(spec, draw);
    const auto truth = collapse_course<MpfrReal>(spec, draw);
    for (std::size_t l = 0; l < truth.size(); ++l) {
      if (truth[l] < -28) continue;
      // 106 bits leave an error of about 1e-31 / rho in rho.
      EXPECT_NEAR(found[l], truth[l], 1e-12 + std::pow(10.0, -30 - truth[l]))
          << spec.key() << " layer " << l;
    }
  }
}

TEST(Stack, TheSplitFormAgreesWithTheDefinitionFarBelowTheFloorOfDoubles) {
  for (const StackSpec& spec : kVariants) {
    const StackDraw draw = draw_stack(spec, 4);
    const auto truth = collapse_course<MpfrReal>(spec, draw);
    const auto split = split_course(spec, draw);
    for (std::size_t l = 0; l < truth.size(); ++l) {
      if (truth[l] < -80) continue;  // 300 bits end at 1e-90
      EXPECT_NEAR(split.log10_rho[l], truth[l], 1e-9) << spec.key() << " layer " << l;
    }
  }
}

TEST(Collapse, CubicWithoutAMaskAndLinearWithOne) {
  StackSpec spec;
  const SplitCourse free = split_course(spec, draw_stack(spec, 1));
  EXPECT_NEAR(free.log10_rho[12] / free.log10_rho[11], 3, 1e-3);
  EXPECT_LT(free.log10_rho[12], -1000);
  spec.causal = true;
  EXPECT_GT(split_course(spec, draw_stack(spec, 1)).log10_rho[12], -6);
}

TEST(Collapse, TokensThatNothingTellsApartAreEqual) {
  StackSpec spec;
  spec.tokens = 3;
  spec.width = 4;
  spec.layers = 40;  // 3^40 decades
  const SplitCourse course = split_course(spec, draw_stack(spec, 1));
  EXPECT_TRUE(std::isfinite(course.log10_rho[30]));
  EXPECT_LT(course.log10_rho[30], -1e13);
  EXPECT_EQ(course.log10_rho[40], -std::numeric_limits<double>::infinity());
}

TEST(Collapse, SummaryOfRunsByHand) {
  StackSpec spec = small_spec();
  CollapseRun first;
  first.direct = {0, -0.5, -2, -6, -24};
  first.split = first.direct;
  first.log10_residual = {-1, -3, -9, -27, -81};
  first.log10_factor = -0.5;
  CollapseRun second = first;
  second.direct = {0, -1.5, -4.5, -13.5, -31.9};  // the last one below the floor
  second.split = {0, -1.5, -4.5, -13.5, -40.5};
  const CollapseSummary summary = summarise(spec, {first, second});
  // Pairs with rho_l < 0.1 and rho_{l+1} > 1e-30: 6/2, 24/6; 4.5/1.5, 13.5/4.5.
  EXPECT_EQ(summary.exponent.count, 4u);
  EXPECT_DOUBLE_EQ(summary.exponent.median, 3);
  EXPECT_DOUBLE_EQ(summary.exponent.high, 3.25);
  // Second half: layers 2 to 4.
  EXPECT_DOUBLE_EQ(summary.decades.low, 11 + 0.25 * 7);
  EXPECT_DOUBLE_EQ(summary.decades.median, (11 + 18) / 2.0);
  EXPECT_DOUBLE_EQ(summary.log10_rho[4].median, (-24 - 40.5) / 2);
  EXPECT_DOUBLE_EQ(summary.largest_difference, 0);
  EXPECT_DOUBLE_EQ(summary.last_exponent, (4 + 3) / 2.0);
  // Bounds of both: 1 * -0.5 - 3 = -3.5, 4 * -0.5 - 9 = -11, -33.5, -101; residuals lie above.
  EXPECT_DOUBLE_EQ(log10_bound(first, 1), -3.5);
  EXPECT_DOUBLE_EQ(log10_bound(first, 4), -20 - 81);
  EXPECT_EQ(summary.bounds, 8u);
  EXPECT_EQ(summary.violations, 8u);
}

TEST(Collapse, TheTheoremsBoundHoldsWhereItSaysSomething) {
  StackSpec spec = small_spec();
  spec.scale = 0.01;
  std::vector<CollapseRun> runs;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) runs.push_back(measure_collapse(spec, seed));
  const CollapseSummary summary = summarise(spec, runs);
  EXPECT_GT(summary.bounds, 0u);
  EXPECT_EQ(summary.violations, 0u);
}

TEST(Collapse, EveryScaleHasItsOwnRecord) {
  StackSpec one;
  StackSpec other;
  one.scale = 0.1234567;
  other.scale = 0.1234568;
  EXPECT_NE(one.key(), other.key());
}

TEST(Collapse, ARunSurvivesItsRecord) {
  const CollapseRun run = measure_collapse(small_spec(), 9);
  const CollapseRun again = collapse_run(Json::parse(to_json(run).dump()));
  EXPECT_EQ(again.direct, run.direct);
  EXPECT_EQ(again.split, run.split);
  EXPECT_EQ(again.log10_factor, run.log10_factor);
}

TEST(Collapse, StopsBetweenLayersAndPaths) {
  StackSpec spec = small_spec();
  int looks = 0;
  const auto stop = [&] {
    if (++looks == 6) throw StoppedError("stopped");  // four layers, then two of the second method
  };
  EXPECT_THROW(measure_collapse(spec, 1, stop), StoppedError);
  spec.skip = true;
  double share = 0;
  const auto stop_late = [&](double done) {
    share = done;
    if (done > 0.5) throw StoppedError("stopped");
  };
  EXPECT_THROW(decompose_paths(spec, draw_stack(spec, 2), stop_late), StoppedError);
  EXPECT_DOUBLE_EQ(share, 41.0 / 81);  // of 3^4 paths
}

TEST(Paths, AddUpToTheNetworkAndAreCounted) {
  StackSpec spec = small_spec();
  spec.skip = true;
  const PathDecomposition found = decompose_paths(spec, draw_stack(spec, 2));
  EXPECT_LT(found.relative_error, 1e-28);
  const std::vector<std::size_t> counts{1, 8, 24, 32, 16};  // C(4, l) 2^l
  ASSERT_EQ(found.lengths.size(), 5u);
  for (std::size_t l = 0; l < 5; ++l) EXPECT_EQ(found.lengths[l].paths, counts[l]);
  // The path without any head is the input.
  EXPECT_NEAR(found.lengths[0].relative_residual, std::pow(10.0, log10_rho(draw_stack(spec, 2).x)),
              1e-14);
}

}  // namespace
}  // namespace fathom::lab
