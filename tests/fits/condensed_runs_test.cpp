#include "fits/condensed_runs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "fits/planted.h"
#include "fits/run_points_csv.h"
#include "fits/study_fit.h"
#include "scratch_folder.h"

namespace fathom::fits {
namespace {

RunPoint run(std::int64_t layers, double tokens, double loss, std::uint64_t seed) {
  return {"r", layers, 64, 12.0 * static_cast<double>(layers) * 64 * 64, tokens, loss, seed};
}

TEST(CondensedRuns, FewAreLeftAlone) {
  const std::vector<RunPoint> runs{run(2, 1e6, 3, 1), run(2, 1e6, 4, 2), run(4, 1e6, 3, 1)};
  const CondensedRuns condensed = condense_runs(runs, 3);
  EXPECT_EQ(condensed.runs.size(), 3u);
  EXPECT_EQ(condensed.note, "");
}

TEST(CondensedRuns, RepeatsAreAveragedInLogLoss) {
  // Five runs, three allowed: groups of two, which end where the shape or the length does.
  const std::vector<RunPoint> runs{run(2, 1e6, 2, 1), run(2, 1e6, 8, 2), run(2, 1e6, 3, 3),
                                   run(4, 1e6, 5, 1), run(4, 1e6, 5, 2)};
  const CondensedRuns condensed = condense_runs(runs, 3);
  ASSERT_EQ(condensed.runs.size(), 3u);
  EXPECT_DOUBLE_EQ(condensed.runs[0].loss, 4);  // sqrt(2 * 8)
  EXPECT_DOUBLE_EQ(condensed.runs[1].loss, 3);
  EXPECT_DOUBLE_EQ(condensed.runs[2].loss, 5);
  EXPECT_EQ(condensed.note,
            "5 runs are more than the 3 that are fitted at once: repeats of a shape and length "
            "were averaged, up to 2 at a time");
}

TEST(CondensedRuns, WhatIsStillTooMuchIsTakenEvenly) {
  std::vector<RunPoint> runs;
  for (int i = 0; i < 20000; ++i) runs.push_back(run(1 + i / 100, 1e6 * (1 + i % 100), 3, 1));
  const CondensedRuns condensed = condense_runs(runs, 1000);
  ASSERT_EQ(condensed.runs.size(), 1000u);
  std::set<std::int64_t> depths;
  for (const RunPoint& kept : condensed.runs) depths.insert(kept.layers);
  EXPECT_EQ(depths.size(), 200u);
  EXPECT_NE(condensed.note.find("1000 of 20000 were taken"), std::string::npos);
}

// What is fitted does not grow with the table (D29): the work is that of `most_runs`.
TEST(StudyFit, ManyRunsAreFittedAsFew) {
  PlantedTransitions planted;
  planted.seeds = 20;
  const std::vector<RunPoint> points = planted.draw(1);
  FitOptions options;
  options.replicates = 20;
  options.joint_replicates = 0;
  options.joint.starts = 2;
  options.most_runs = 80;
  const StudyFit fit = fit_study(points, options);
  EXPECT_EQ(fit.runs, 700u);
  EXPECT_LE(fit.runs_compared, 80u);
  ASSERT_TRUE(fit.joint);
  EXPECT_LE(fit.joint->runs, 80u);
  ASSERT_TRUE(fit.surface);
  EXPECT_LE(fit.surface->runs, 80u);
  // Averages of nine runs: a third of a run's noise, and the planted law comes back.
  EXPECT_NEAR(fit.noise, planted.noise / 3, planted.noise / 6);
  ASSERT_TRUE(fit.law);
  EXPECT_NEAR(fit.law->a, planted.a, 0.1);
  ASSERT_FALSE(fit.warnings.empty());
  EXPECT_TRUE(fit.warnings.front().starts_with("700 runs are more than the 80"));
}

// The interacting forms start from the additive ones, which are fitted once.
TEST(JointFit, AFormThatAnotherStartsFromIsFittedOnce) {
  const std::vector<RunPoint> points = PlantedTransitions().draw(1);
  JointOptions options;
  options.starts = 2;
  JointFits fits(points, options);
  std::string reason;
  const auto plain = fits.fit({true, true, false, true, false}, reason);
  EXPECT_EQ(fits.count(), 1u);
  const auto crossed = fits.fit({true, true, false, true, true}, reason);
  EXPECT_EQ(fits.count(), 2u);
  const auto alone = fit_joint(points, {true, true, false, true, true}, options, reason);
  ASSERT_EQ(crossed.has_value(), alone.has_value());
  if (alone) {
    EXPECT_EQ(crossed->coefficients, alone->coefficients);
  }
}

TEST(RunPoints, NumbersThatNoRunHasAreRefusedByLineAndColumn) {
  const ScratchFolder folder;
  const auto refusal = [&](const std::string& row) -> std::string {
    const std::filesystem::path file = folder / "runs.csv";
    std::ofstream(file) << "layers,width,nonembedding_params,tokens,loss,seed\n2,64,98304,1e6,3,1\n"
                        << row << "\n";
    try {
      read_run_points(file);
    } catch (const DataError& error) {
      const std::string text = error.what();
      return text.substr(text.find("line"));
    }
    return "";
  };
  EXPECT_EQ(refusal("2,64,98304,1e6,3,2"), "");
  EXPECT_EQ(refusal("2,64,1e-320,1e6,3,2"),
            "line 3: nonembedding_params is 1e-320, not a number from 1 to 1e+18");
  EXPECT_EQ(refusal("0.2,64,98304,1e6,3,2"), "line 3: layers is 0.2, not a number from 1 to 1e+06");
  EXPECT_EQ(refusal("2,1e300,98304,1e6,3,2"),
            "line 3: width is 1e+300, not a number from 1 to 1e+09");
  EXPECT_EQ(refusal("2,64,98304,18446744073709551616,3,2"),
            "line 3: tokens is 1.8446744073709552e+19, not a number from 1 to 1e+18");
  EXPECT_EQ(refusal("2,64,98304,1e6,1e-320,2"),
            "line 3: loss is 1e-320, not a number from 1e-12 to 1e+06");
  EXPECT_EQ(refusal("2,64,98304,1e6,3,1e300"),
            "line 3: seed is 1e+300, not a number from -9e+18 to 9e+18");
  EXPECT_NE(refusal("2,64,98304,1e6,nan,2"), "");
}

}  // namespace
}  // namespace fathom::fits
