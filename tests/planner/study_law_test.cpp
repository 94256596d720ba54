// Plans with a law of one's own: what the runs hardly fix is not planned with.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "planner/planner.h"
#include "scratch_folder.h"

namespace fathom::planner {
namespace {

struct LawText {
  double b_error = 0.004;
  double tokens_per_parameter = 20;
  std::string joint = "null";

  std::string json() const {
    return fmt::format(
        R"({{"schema": "fathom.law.v1", "runs": 40, "params": [1e6, 2e7], "layers": [2, 16],
            "block_coefficient": 12, "tokens": {{"count": {}, "per_parameter": true}},
            "exponential": {{"a": 5.0, "b": 0.06, "a_error": 0.05, "b_error": {},
                             "correlation": -0.5}},
            "joint": {}}})",
        tokens_per_parameter, b_error, joint);
  }
};

/// Width and depth terms whose replicates all agree, with `independent` runs behind them.
std::string joint_text(int independent, double depth_exponent_low) {
  const std::string best = "[1.0, 0.5, 0.5, 0.5, 0.5]";
  std::string replicates;
  for (int i = 0; i < 40; ++i) {
    replicates +=
        fmt::format("{}[1.0, 0.5, 0.5, {}, 0.5]", i ? "," : "", i % 2 ? depth_exponent_low : 0.5);
  }
  return fmt::format(
      R"({{"form": "w+L", "terms": ["w", "L"], "interaction": false, "coefficients": {},
          "runs": 40, "independent": {}, "mean_error": 0.01, "holdout_error": null,
          "replicates": [{}]}})",
      best, independent, replicates);
}

Plan plan_with(const LawText& law, double size = 1e7) {
  const ScratchFolder folder;
  PlanRequest request;
  request.parameters = size;
  request.base.gated = true;
  request.law = "study:" + folder.write("law.json", law.json()).string();
  return make_plan(request);
}

bool says(const Plan& plan, const std::string& part) {
  if (!plan.refused) return false;
  for (const std::string& reason : plan.refused->reasons) {
    if (reason.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(StudyLawPlan, ALawThatItsRunsFixPlans) {
  const Plan plan = plan_with({});
  EXPECT_FALSE(plan.refused);
  EXPECT_EQ(plan.law.title, "This study");
  EXPECT_EQ(plan.law_evidence, laws::Evidence::fitted);
  const Plan joint = plan_with({.joint = joint_text(30, 0.45)});
  EXPECT_FALSE(joint.refused) << joint.refused->reasons.front();
}

TEST(StudyLawPlan, ALawFromNothingIsNotPlannedWith) {
  EXPECT_TRUE(says(plan_with({.b_error = 0.04}), "exponent of width in depth may be zero"));
  EXPECT_TRUE(says(plan_with({.tokens_per_parameter = 0.06}), "times fewer than this plan"));
  EXPECT_TRUE(says(plan_with({.joint = joint_text(5, 0.45)}), "5 independent runs for 5"));
  EXPECT_TRUE(says(plan_with({.joint = joint_text(30, -0.2)}), "exponent of depth may be zero"));
}

TEST(StudyLawPlan, WhatPlansInsteadIsTheConsensusAndTheLawIsStillShown) {
  const Plan plan = plan_with({.b_error = 0.04});
  EXPECT_EQ(plan.law.name, "consensus");
  EXPECT_EQ(plan.laws.front().info.title, "This study");
  EXPECT_EQ(plan.laws.front().vote, 0);
}

}  // namespace
}  // namespace fathom::planner
