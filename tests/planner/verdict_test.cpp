// The verdict over forty budgets: monotone, inside the bands, divisible, never against itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/counts.h"
#include "planner/planner.h"
#include "shape/rounding.h"

namespace fathom::planner {
namespace {

/// Ten million to a trillion, evenly in logarithms, with the usual round sizes between.
std::vector<double> budgets() {
  std::vector<double> sizes{125e6, 350e6, 760e6, 1.3e9, 1.4e9, 1.6e9, 2.7e9, 3e9,
                            6.7e9, 7e9,   8e9,   13e9,  30e9,  70e9,  175e9, 405e9};
  for (int i = 0; i < 24; ++i) sizes.push_back(1e7 * std::pow(1e5, i / 23.0));
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

using Change = std::function<void(PlanRequest&)>;

PlanRequest request_for(double size, const Change& change) {
  PlanRequest request;
  request.parameters = size;
  request.base.gated = true;
  if (change) change(request);
  return request;
}

/// The least depth and width that a larger budget may still get: one step of the lattice back.
std::int64_t step_back(std::int64_t layers) {
  const auto below = friendly_depths(1, as_double(layers) - 0.5, {});
  return below.empty() ? 1 : below.back();
}
double width_step_back(std::int64_t width) {
  return as_double(width - width_step(as_double(width) - 1));
}

void expect_divisible(const Shape& shape, const RoundingRules& rules) {
  EXPECT_TRUE(shape.layers % 2 == 0 || shape.layers < 8) << shape.layers;
  EXPECT_TRUE(shape.layers % 4 == 0 || shape.layers < 20) << shape.layers;
  EXPECT_EQ(shape.heads % 2, 0) << shape.heads;
  EXPECT_EQ(shape.heads % rules.tensor_parallel, 0);
  EXPECT_EQ(shape.width % (shape.width >= 1024 ? 128 : 32), 0) << shape.width;
  EXPECT_TRUE(shape.head_size >= 64 || shape.width < 512) << shape.head_size;
  EXPECT_LE(shape.head_size, 128);
  EXPECT_EQ(shape.ffn % 64, 0);
}

/// The bands of every law that has data here hold the pick.
void expect_inside_bands(const Plan& plan) {
  const double layers = as_double(plan.recommendation.shape.layers);
  EXPECT_GE(layers, plan.band.low);
  EXPECT_LE(layers, plan.band.high);
  for (const LawRow& row : plan.laws) {
    if (row.evidence != laws::Evidence::fitted || !row.band) continue;
    EXPECT_GE(layers, row.band->low) << row.info.name;
    EXPECT_LE(layers, row.band->high) << row.info.name;
  }
}

void expect_not_against_itself(const Plan& plan) {
  EXPECT_NE(plan.regime, DepthRegime::inefficient);
  for (const Statement& statement : plan.statements) {
    EXPECT_EQ(statement.text.find("inefficient"), std::string::npos) << statement.text;
  }
  for (const ObjectiveRow& row : plan.objectives) {
    EXPECT_LE(plan.objectives[0].candidate.penalty, row.candidate.penalty);
  }
  const std::int64_t layers = plan.recommendation.shape.layers;
  EXPECT_GE(layers, plan.verdict.equals.low);
  EXPECT_LE(layers, plan.verdict.equals.high);
  EXPECT_TRUE(plan.verdict.sentences.front().starts_with("Take ")) << layers;
}

struct Case {
  const char* name;
  Change change;
  double smallest = 0;
};

std::vector<Case> cases() {
  const auto parallel = [](std::int64_t degree) {
    return [degree](PlanRequest& request) { request.rules.tensor_parallel = degree; };
  };
  return {{"plain request", {}},
          {"total", [](PlanRequest& r) { r.count_embeddings = true; }, 20e6},
          {"vocabulary 256K", [](PlanRequest& r) { r.base.vocab = 256000; }},
          {"total, vocabulary 8192",
           [](PlanRequest& r) {
             r.count_embeddings = true;
             r.base.vocab = 8192;
           }},
          {"flops",
           [](PlanRequest& r) {
             r.flops = 120 * *r.parameters * *r.parameters;
             r.parameters.reset();
           }},
          {"300B tokens", [](PlanRequest& r) { r.tokens = 300e9; }},
          {"gpt2 style", [](PlanRequest& r) { r.base.gated = false; }},
          {"tensor parallel 2", parallel(2)},
          {"tensor parallel 4", parallel(4), 30e6},
          {"tensor parallel 8", parallel(8), 100e6}};
}

TEST(Verdict, FortyBudgetsAreMonotoneDivisibleAndConsistent) {
  ASSERT_GE(budgets().size(), 40u);
  for (const Case& c : cases()) {
    std::int64_t deepest = 0;
    std::int64_t widest = 0;
    for (const double size : budgets()) {
      if (size < c.smallest) continue;
      SCOPED_TRACE(std::string(c.name) + ", " + std::to_string(size));
      const Plan plan = make_plan(request_for(size, c.change));
      const Shape& shape = plan.recommendation.shape;
      if (deepest > 0) {
        EXPECT_GE(shape.layers, step_back(deepest)) << shape.width;
        EXPECT_GE(as_double(shape.width), width_step_back(widest)) << shape.layers;
      }
      deepest = std::max(deepest, shape.layers);
      widest = std::max(widest, shape.width);
      EXPECT_LE(std::fabs(plan.recommendation.off_budget), 0.03);
      expect_divisible(shape, plan.request.rules);
      expect_inside_bands(plan);
      expect_not_against_itself(plan);
    }
  }
}

/// The request without constraints gets its layers strictly in order.
TEST(Verdict, MoreBudgetNeverMeansFewerLayers) {
  std::int64_t previous = 0;
  for (double size = 1e7; size < 1e12; size *= 1.04) {
    const std::int64_t layers = make_plan(request_for(size, {})).recommendation.shape.layers;
    EXPECT_GE(layers, previous) << size;
    previous = layers;
  }
}

TEST(Verdict, MarksFollowSizeTokensAndDepth) {
  const auto verdict = [](double size, std::optional<double> tokens) {
    return make_plan(request_for(size, [&](PlanRequest& r) { r.tokens = tokens; })).verdict;
  };
  // 125M at 2.5B tokens: Levine has data for the depth, nobody for the losses.
  EXPECT_EQ(verdict(125e6, {}).evidence, laws::Evidence::fitted);
  EXPECT_EQ(verdict(125e6, {}).equals_evidence, laws::Evidence::extrapolated);
  EXPECT_EQ(verdict(1.3e9, {}).equals_evidence, laws::Evidence::fitted);
  EXPECT_EQ(verdict(1.3e9, 15e12).evidence, laws::Evidence::extrapolated);
  EXPECT_EQ(verdict(1.3e9, 15e12).equals_evidence, laws::Evidence::extrapolated);
  EXPECT_EQ(verdict(1.3e9, 1e3).equals_evidence, laws::Evidence::extrapolated);
  EXPECT_EQ(verdict(70e9, {}).evidence, laws::Evidence::extrapolated);
  // Clipped at what was trained, even where the law sees no end.
  EXPECT_LE(verdict(1.3e9, 1e3).equals.high, 80);
  EXPECT_GE(verdict(1.3e9, 1e3).equals.low, 3);
}

/// Some law with a loss of its own has runs of this size, length and depth.
bool was_trained(const Plan& plan, std::int64_t layers) {
  const double depth = as_double(layers);
  return std::ranges::any_of(plan.laws, [&](const LawRow& row) {
    return row.vote > 0 && row.band &&
           laws::distance_outside(
               row.info, {plan.budget.block_parameters_at(depth), plan.tokens, depth}) == 0;
  });
}

TEST(Verdict, BothEndsOfAFittedBandWereTrained) {
  int fitted = 0;
  for (const double size : budgets()) {
    const Plan plan = make_plan(request_for(size, {}));
    if (plan.verdict.equals_evidence != laws::Evidence::fitted) continue;
    ++fitted;
    EXPECT_TRUE(was_trained(plan, plan.verdict.equals.low)) << size;
    EXPECT_TRUE(was_trained(plan, plan.verdict.equals.high)) << size;
  }
  EXPECT_GE(fitted, 10);
  // Gemstones ends at 1.8B parameters; beyond it only Liu has runs, up to 49 layers.
  EXPECT_GT(make_plan(request_for(1.7e9, {})).verdict.equals.high, 49);
  const Verdict beyond = make_plan(request_for(5e9, {})).verdict;
  EXPECT_EQ(beyond.equals.high, 49);
  EXPECT_NE(beyond.sentences[1].find("49 is the deepest that was trained at this size"),
            std::string::npos)
      << beyond.sentences[1];
}

TEST(Verdict, ConstraintsThatCostLossAreSaidToCostIt) {
  const Plan plan = make_plan(request_for(7e9, [](PlanRequest& r) { r.rules.max_layers = 12; }));
  EXPECT_LE(plan.recommendation.shape.layers, 12);
  EXPECT_TRUE(plan.verdict.sentences[1].starts_with("The constraints cost +"))
      << plan.verdict.sentences[1];
  const Plan flat = make_plan(request_for(1e9, [](PlanRequest& r) { r.rules.max_layers = 1; }));
  EXPECT_TRUE(flat.verdict.sentences[0].starts_with("Take 1 layer × "))
      << flat.verdict.sentences[0];
  // What would be as good does not depend on the constraint.
  EXPECT_EQ(flat.verdict.equals.high, make_plan(request_for(1e9, {})).verdict.equals.high);
}

TEST(Verdict, TinyModelsGetADepthOfTheirBand) {
  for (const double size : {5e4, 1e5, 3e5, 1e6, 3e6}) {
    const Plan plan = make_plan(request_for(size, {}));
    EXPECT_LE(plan.recommendation.penalty, plan.request.tolerance) << size;
    EXPECT_LE(std::fabs(plan.recommendation.off_budget), 0.12) << size;
  }
}

TEST(Verdict, SaysWhereLawsAndPracticeDisagree) {
  const Verdict large = make_plan(request_for(175e9, {})).verdict;
  EXPECT_TRUE(large.laws_disagree);
  EXPECT_GT(large.laws_range.high, 1.5 * large.laws_range.low);
  const Verdict seven = make_plan(request_for(7e9, {})).verdict;
  ASSERT_TRUE(seven.practice);
  EXPECT_NEAR(as_double(seven.practice->low), 32, 4);
  EXPECT_TRUE(seven.leaves_practice);
  bool explained = false;
  for (const std::string& sentence : seven.sentences) {
    explained = explained || sentence.find("latency and tensor parallelism") != std::string::npos;
  }
  EXPECT_TRUE(explained);
}

}  // namespace
}  // namespace fathom::planner
