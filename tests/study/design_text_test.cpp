#include "study/design_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "study/rounds.h"

namespace fathom::study {
namespace {

using fits::DesignGoal;
using fits::GoalKind;
using fits::GoalState;

GoalState unseen(const DesignGoal& goal) {
  GoalState state;
  state.goal = goal;
  state.error = std::numeric_limits<double>::infinity();
  return state;
}

TEST(DesignText, SaysValueIntervalErrorAndWhetherItIsDecided) {
  GoalState slope{{GoalKind::slope, 0.015, 0, 0, 0}, 0.142, 0.09, 0.21, 0.031, 0.02, false, false};
  EXPECT_EQ(goal_text(slope),
            "b: 0.1420 (95 %: 0.0900 to 0.2100); error 0.031, target 0.015: not decided");
  GoalState crossing{
      {GoalKind::crossing, 0.2, 3, 6, 0}, 1.9e6, 1.5e6, 2.3e6, 0.12, 0.12, true, false};
  EXPECT_EQ(goal_text(crossing),
            "6 over 3: 1.90M (95 %: 1.50M to 2.30M); error of ln N 0.12, target 0.2: decided");
  GoalState odds{{GoalKind::form, 20, 0, 0, 0}, 0.25, {}, {}, 4, 4, false, false};
  EXPECT_EQ(goal_text(odds), "odds of the power law 4 to 1, target 20 to 1: not decided");
}

TEST(DesignText, SaysOneSidedBoundsAndWhatIsNotKnown) {
  GoalState depth = unseen({GoalKind::best_depth, 0.16, 0, 0, 1e7});
  EXPECT_EQ(goal_text(depth),
            "best depth at 10.0M: not known yet; target error of ln L 0.16: not decided");
  depth.low = 12;
  depth.out_of_reach = true;
  EXPECT_EQ(goal_text(depth),
            "best depth at 10.0M: not known yet (95 %: above 12.0 layers); target error of ln L "
            "0.16: out of reach");
}

TEST(DesignText, TellsTheFirstRoundFromLaterOnes) {
  DesignRules rules;
  rules.unit = CostUnit::runs;
  rules.budget = 40;
  DesignProgress progress;
  progress.step.goals = {unseen({GoalKind::offset, 0.3, 0, 0, 0})};
  progress.step.stage = fits::DesignStage::first_round;
  progress.step.batch.resize(15);
  progress.next_cost = 15;
  progress.next_seconds = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::string> before = design_lines(progress, rules);
  ASSERT_EQ(before.size(), 3u);
  EXPECT_EQ(before[1], "no round started yet; up to 40 runs allowed");
  EXPECT_EQ(before[2], "the first round: 15 runs");
  progress.rounds = progress.complete = 1;
  progress.step.spent = 15;
  progress.step.cost_to_decide = 12;
  progress.step.stage = fits::DesignStage::undecided;
  progress.next_cost = 6;
  const std::vector<std::string> later = design_lines(progress, rules);
  EXPECT_EQ(later[1],
            "1 of 1 rounds complete, 15 runs spent of 40 runs; about 12 runs more until all goals "
            "are decided, by the current forecast");
  EXPECT_EQ(later[2], "the next round: 6 runs");
}

}  // namespace
}  // namespace fathom::study
