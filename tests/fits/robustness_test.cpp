#include "fits/robustness.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fits/planted_world.h"
#include "fits/surface_lengths.h"

namespace fathom::fits {
namespace {

/// A study and the shapes around its best depth at 2.6 M trained again in another world.
struct Trial {
  PlantedWorld world;
  Trial() { world.shapes = gpu_study(); }

  /// `moved`: ln of how much deeper the best depth is; the whole loss changes too.
  TrainingChange change(double moved, int seeds, std::uint64_t draw) const {
    PlantedWorld other = world;
    other.a =
        world.a - moved / 2 * (1 + 2 * world.b * std::exp(world.best_log_depth(std::log(2.6e6))));
    other.noise = world.noise;
    TrainingChange result{"rate x 2", {}};
    for (const auto& [layers, width] : {std::pair{2, 336}, std::pair{3, 272}, std::pair{4, 240},
                                        std::pair{6, 192}, std::pair{8, 160}, std::pair{12, 128}}) {
      for (int seed = 1; seed <= seeds; ++seed) {
        result.runs.push_back(
            other.run(layers, width, static_cast<std::uint64_t>(seed), 1e8, draw + 1000));
        result.runs.back().loss *= 1.01;
      }
    }
    return result;
  }
};

TEST(Robustness, TellsAMovedAnswerFromAnUnmovedOne) {
  const Trial trial;
  int holds = 0;
  int moves = 0;
  int wrong = 0;
  for (std::uint64_t draw = 1; draw <= 6; ++draw) {
    const std::vector<TrainingChange> changes{trial.change(0, 3, draw), trial.change(0.7, 3, draw)};
    std::string reason;
    const auto result = judge_robustness(trial.world.draw(draw), changes, 2.6e6, {}, reason);
    ASSERT_TRUE(result) << reason;
    ASSERT_EQ(result->changes.size(), 2u);
    EXPECT_EQ(result->changes[0].shapes, 6u);
    EXPECT_NEAR(result->changes[0].loss_change, std::log(1.01), 0.004);
    holds += result->changes[0].holds == Holds::yes;
    moves += result->changes[1].holds == Holds::no;
    wrong += result->changes[0].holds == Holds::no;
    wrong += result->changes[1].holds == Holds::yes;
  }
  EXPECT_GE(holds, 4);
  EXPECT_GE(moves, 4);
  EXPECT_EQ(wrong, 0);
}

TEST(Robustness, ShiftIntervalsHoldTheTruth) {
  const Trial trial;
  int held = 0;
  for (std::uint64_t draw = 1; draw <= 12; ++draw) {
    const double moved = 0.1 * static_cast<double>(draw % 5) - 0.2;
    std::string reason;
    const std::vector<TrainingChange> changes{trial.change(moved, 2, draw)};
    const auto result = judge_robustness(trial.world.draw(draw), changes, 2.6e6, {}, reason);
    ASSERT_TRUE(result);
    const Interval range = result->changes[0].shift_interval;
    held += range.low <= moved && moved <= range.high;
  }
  EXPECT_GE(held, 10);
}

TEST(Robustness, SaysWhatIsMissing) {
  const Trial trial;
  TrainingChange lonely = trial.change(0, 1, 1);
  lonely.runs.resize(1);
  std::string reason;
  const std::vector<TrainingChange> changes{lonely};
  const auto result = judge_robustness(trial.world.draw(1), changes, 2.6e6, {}, reason);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->changes[0].holds, Holds::unclear);
  EXPECT_NE(result->changes[0].reason.find("two depths"), std::string::npos);
}

TEST(SurfaceLengths, EachLengthHasItsLaw) {
  PlantedWorld world;
  world.shapes = gpu_study();
  world.tokens = {3e7, 1e8};
  world.move = -0.6;
  const std::vector<LengthLaw> laws = fit_lengths(world.draw(2), {});
  ASSERT_EQ(laws.size(), 2u);
  EXPECT_NEAR(laws[0].share, 0.3, 1e-6);
  EXPECT_NEAR(laws[1].share, 1, 1e-6);
  EXPECT_EQ(laws[0].runs, 80u);
  // a of the shorter training is that of the longer plus move ln(0.3) / 2.
  EXPECT_NEAR(laws[1].law.a, world.a, 3 * laws[1].law.a_error);
  EXPECT_NEAR(laws[0].law.a, world.a + world.move * std::log(0.3) / 2, 3 * laws[0].law.a_error);
  world.tokens = {1e8};
  EXPECT_TRUE(fit_lengths(world.draw(2), {}).empty());
}

}  // namespace
}  // namespace fathom::fits
