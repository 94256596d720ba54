// What the docs say of runs that were made and kept: a change of the surface must not lose it
// unseen.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "fits/run_points_csv.h"
#include "fits/surface_fit.h"

namespace fathom::fits {
namespace {

const std::filesystem::path kResults = std::filesystem::path(FATHOM_SOURCE_DIR) / "docs/results";

// Studies of the quick preset, each with seeds of its own (docs/studies.md): at least nine of ten
// give the best depth at the largest size with both bounds.
TEST(CommittedRuns, QuickStudiesTellTheBestDepth) {
  for (const int first : {1, 21}) {
    int both = 0;
    for (int study = first; study < first + 10; ++study) {
      const auto runs = read_run_points(kResults / "quick-seeds.csv",
                                        {{{"study", std::to_string(study)}}, "", {}});
      ASSERT_EQ(runs.size(), 22u) << study;
      std::string reason;
      const auto posterior = SurfacePosterior::fit(runs, {}, reason);
      ASSERT_TRUE(posterior) << reason;
      const BestDepth best = best_depth_at(*posterior, std::exp(posterior->data().log_size.high));
      both += best.low && best.high;
      EXPECT_GT(best.layers, 2.5) << study;
      EXPECT_LT(best.layers, 4.5) << study;
    }
    EXPECT_GE(both, 9) << "studies from " << first;
  }
}

// The study of an H200 wanted b to 0.015 and a to 0.15, and at least four crossings.
TEST(CommittedRuns, LawOfAnH200IsFixed) {
  std::string reason;
  const auto posterior =
      SurfacePosterior::fit(read_run_points(kResults / "law-h200/points.csv"), {}, reason);
  ASSERT_TRUE(posterior) << reason;
  const SurfaceFit fit = summarise_surface(*posterior);
  EXPECT_LE(fit.law.b_error, 0.015);
  EXPECT_LE(fit.law.a_error, 0.15);
  EXPECT_NEAR(fit.law.b, 0.203, 0.005);
  EXPECT_GT(fit.exponential_odds, 100);
  int crossings = 0;
  for (const Transition& t : fit.crossings) crossings += t.status == TransitionStatus::crossing;
  EXPECT_GE(crossings, 4);
}

}  // namespace
}  // namespace fathom::fits
