#include "planner/planner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "planner/find_law.h"
#include "shape/flops.h"

namespace fathom::planner {
namespace {

PlanRequest request_for(double parameters) {
  PlanRequest request;
  request.parameters = parameters;
  request.base.gated = true;
  return request;
}

TEST(Planner, OneTrillionUnderLevine) {
  PlanRequest request = request_for(1e12);
  request.law = "levine2020";
  const Plan plan = make_plan(request);
  EXPECT_NEAR(plan.unrounded.layers, 94.75, 0.01);
  EXPECT_NEAR(plan.unrounded.width, 29657, 30);
  EXPECT_EQ(plan.law_evidence, laws::Evidence::extrapolated);
  EXPECT_EQ(plan.recommendation.shape.layers, 96);
  EXPECT_FALSE(fits_in_memory(plan.device_memory, plan.hardware));
  ASSERT_TRUE(plan.fitting);
  EXPECT_GE(plan.fitting->gpus, 127);  // 16 TB of state over 127 GB each
  EXPECT_NE(plan.memory.find("does not fit 1 GPU"), std::string::npos) << plan.memory;
}

TEST(Planner, RecommendationSpendsTheBudgetOverEightDecades) {
  for (double n = 1e6; n <= 1e13; n *= std::sqrt(10.0)) {
    for (const bool gated : {true, false}) {
      PlanRequest request = request_for(n);
      request.base.gated = gated;
      const Plan plan = make_plan(request);
      const Shape& shape = plan.recommendation.shape;
      EXPECT_NEAR(plan.recommendation.parameters / n, 1, 0.03) << n;
      EXPECT_EQ(shape.attention_width(), shape.width);
      EXPECT_LT(std::fabs(std::log(static_cast<double>(shape.layers) / plan.unrounded.layers)),
                n < 3e6 ? 0.5 : 0.25)
          << n;
    }
  }
}

TEST(Planner, TotalCountsEmbeddings) {
  PlanRequest request = request_for(150e6);
  request.count_embeddings = true;
  const Plan plan = make_plan(request);
  EXPECT_NEAR(static_cast<double>(plan.parameters.total()) / 150e6, 1, 0.04);
  EXPECT_LE(plan.recommendation.shape.layers,
            make_plan(request_for(150e6)).recommendation.shape.layers);
}

TEST(Planner, FlopsBudgetIsSpentExactlyBeforeRounding) {
  PlanRequest request = request_for(0);
  request.parameters.reset();
  request.flops = 1e21;
  const Plan plan = make_plan(request);
  const double flops =
      train_flops_per_token(plan.unrounded.layers, plan.unrounded.width, 12, 50304, 2048);
  EXPECT_NEAR(flops * plan.tokens / 1e21, 1, 1e-6);
  EXPECT_NEAR(plan.tokens, 20 * plan.budget.parameters(), 1);
  EXPECT_NEAR(plan.train_flops / 1e21, 1, 0.1);
  // 6 N D alone would give sqrt(1e21 / 120) = 2.9B; logits and attention take their share.
  EXPECT_LT(plan.budget.parameters(), 2.9e9);
  EXPECT_GT(plan.budget.parameters(), 2.2e9);
}

TEST(Planner, BandContainsItsOptimumAndCostsTheTolerance) {
  const Plan plan = make_plan(request_for(435e6));
  EXPECT_LT(plan.band.low, plan.best_layers);
  EXPECT_GT(plan.band.high, plan.best_layers);
  EXPECT_GT(plan.band.high / plan.band.low, 2.5);  // the optimum is flat
  for (const PenaltyPoint& point : plan.curve) {
    const bool inside = point.layers >= plan.band.low && point.layers <= plan.band.high;
    EXPECT_EQ(inside, point.penalty <= 0.005 + 1e-9) << point.layers;
    EXPECT_GE(point.layers, 3 * 0.999);  // what Gemstones trained
    EXPECT_LE(point.layers, 80 * 1.001);
  }
}

TEST(Planner, ObjectivesOrderAsTheyShould) {
  PlanRequest request = request_for(1.3e9);
  const Plan plan = make_plan(request);
  ASSERT_EQ(plan.objectives.size(), 3u);
  const Candidate& loss = plan.objectives[0].candidate;
  const Candidate& time = plan.objectives[1].candidate;
  const Candidate& latency = plan.objectives[2].candidate;
  EXPECT_LE(time.seconds_to_equal_loss, loss.seconds_to_equal_loss);
  EXPECT_LE(latency.decode_seconds, loss.decode_seconds);
  EXPECT_LE(latency.penalty, request.tolerance);
  EXPECT_LT(latency.shape.layers, loss.shape.layers);
  // The planned tokens at the modelled rate.
  EXPECT_NEAR(loss.train_seconds, 26e9 / loss.tokens_per_second, 1e-6 * loss.train_seconds);

  request.objective = Objective::decode_latency;
  EXPECT_EQ(make_plan(request).recommendation.shape.layers, latency.shape.layers);
}

TEST(Planner, ConstraintsHoldForEveryObjective) {
  PlanRequest request = request_for(7e9);
  request.rules.tensor_parallel = 8;
  request.rules.pipeline_parallel = 4;
  request.rules.max_layers = 48;
  request.base.kv_group = 4;
  for (const ObjectiveRow& row : make_plan(request).objectives) {
    const Shape& shape = row.candidate.shape;
    EXPECT_LE(shape.layers, 48);
    EXPECT_EQ(shape.layers % 4, 0);
    EXPECT_EQ(shape.heads % 8, 0);
    EXPECT_EQ(shape.kv_heads % 8, 0);
    EXPECT_EQ(shape.heads, 4 * shape.kv_heads);
    EXPECT_EQ(shape.ffn % 8, 0);
    EXPECT_EQ(shape.vocab % (64 * 8), 0);
  }
}

TEST(Planner, SmallVocabularyIsAWarningWithNumbers) {
  PlanRequest request = request_for(1e9);
  request.base.vocab = 256;
  const Plan plan = make_plan(request);
  bool warned = false;
  for (const std::string& warning : plan.warnings) {
    // 1e9 / (12 * 256^2) = 1272 layers.
    warned = warned || (warning.find("embedding rank 256") != std::string::npos &&
                        warning.find("1272 layers") != std::string::npos);
  }
  EXPECT_TRUE(warned);
}

TEST(Planner, RegimeFollowsTheTransitionInsideLevinesData) {
  PlanRequest levine = request_for(3e7);
  levine.law = "levine2020";
  EXPECT_EQ(make_plan(levine).regime, DepthRegime::transition);
  levine.law = "aspect:128";
  levine.parameters = 2e8;
  EXPECT_EQ(make_plan(levine).regime, DepthRegime::efficient);
  EXPECT_FALSE(make_plan(request_for(1e12)).regime.has_value());
}

TEST(Planner, TensorParallelismKeepsSensibleHeadsAndSaysWhatItPads) {
  PlanRequest request = request_for(125e6);
  request.rules.tensor_parallel = 8;
  request.base.vocab = 50257;
  const Plan plan = make_plan(request);
  EXPECT_GE(plan.recommendation.shape.head_size, 64);
  EXPECT_EQ(plan.recommendation.shape.heads % 8, 0);
  bool said = false;
  for (const std::string& warning : plan.warnings) {
    said = said || warning.find("padded from 50,257 to 50,688") != std::string::npos;
  }
  EXPECT_TRUE(said);
}

TEST(Planner, ImpossibleBudgetsAreRefused) {
  PlanRequest total = request_for(1e6);
  total.count_embeddings = true;  // the smallest embedding alone is 32 x 50,304
  EXPECT_THROW(make_plan(total), ConfigError);
  PlanRequest shallow = request_for(1e9);
  shallow.rules.max_layers = 1;
  shallow.rules.width_multiple = 100000;
  EXPECT_THROW(make_plan(shallow), ConfigError);
}

TEST(Planner, EveryStatementIsMarked) {
  for (const double size : {3e7, 1e12}) {
    const Plan plan = make_plan(request_for(size));
    EXPECT_GE(plan.statements.size(), 4u);
    for (const Statement& statement : plan.statements) {
      EXPECT_FALSE(to_string(statement.evidence).empty());
      EXPECT_FALSE(statement.text.empty());
    }
  }
}

TEST(Planner, ContradictionsAreRefused) {
  PlanRequest both = request_for(1e9);
  both.flops = 1e20;
  EXPECT_THROW(make_plan(both), ConfigError);
  PlanRequest neither;
  EXPECT_THROW(make_plan(neither), ConfigError);
  EXPECT_THROW(make_plan(request_for(10)), ConfigError);
  PlanRequest stages = request_for(1e9);
  stages.rules.pipeline_parallel = 16;
  stages.rules.max_layers = 8;
  EXPECT_THROW(make_plan(stages), ConfigError);
  PlanRequest law = request_for(1e9);
  law.law = "levin";
  EXPECT_THROW(make_plan(law), ConfigError);
}

TEST(Planner, KvHeadsAndGpusAreKept) {
  PlanRequest request = request_for(7e9);
  request.base.kv_heads = 8;
  request.gpus = 16;
  request.zero = 1;
  const Plan plan = make_plan(request);
  EXPECT_EQ(plan.recommendation.shape.kv_heads, 8);
  EXPECT_EQ(plan.recommendation.shape.heads % 8, 0);
  EXPECT_NEAR(plan.recommendation.parameters / 7e9, 1, 0.03);
  const double state = static_cast<double>(plan.parameters.total());
  EXPECT_DOUBLE_EQ(plan.device_memory.optimizer, 12 * state / 16);
  EXPECT_DOUBLE_EQ(plan.device_memory.weights, 2 * state);
  request.gpus = 3;
  request.rules.tensor_parallel = 2;
  EXPECT_THROW(make_plan(request), ConfigError);
}

TEST(FindLaw, TakesNamesAndRatiosAndRefusesOthers) {
  EXPECT_EQ(find_law("levine2020")->info().title, "Levine 2020");
  EXPECT_NEAR(find_law("aspect:64")->optimum(laws::Budget::non_embedding(12 * 64 * 64.0)).layers, 1,
              1e-9);
  EXPECT_THROW(find_law("levin2020"), ConfigError);
  EXPECT_THROW(find_law("aspect:-3"), ConfigError);
}

}  // namespace
}  // namespace fathom::planner
