// The consensus against its parts: votes, expected loss, and the constants it is built on.
#include "laws/consensus.h"

#include <gtest/gtest.h>

#include <cmath>

#include "laws/gemstones.h"
#include "laws/levine.h"
#include "laws/search.h"

namespace fathom::laws {
namespace {

LawPointer gemstones() {
  return published_law("gemstones2025");
}

Consensus consensus_at(double parameters, double tokens) {
  return {measured_laws(), gemstones(), Budget::non_embedding(parameters), tokens};
}

double weight_of(const Consensus& consensus, const std::string& name) {
  for (const Vote& vote : consensus.votes()) {
    if (vote.law->info().name == name) return vote.weight;
  }
  return -1;
}

TEST(Consensus, TheSpreadIsThatOfTheLawsWhereAllHaveData) {
  const Budget budget = Budget::non_embedding(550e6);
  std::vector<double> depths;
  for (const LawPointer& law : measured_laws()) {
    EXPECT_EQ(law->optimum_evidence(budget, 11e9), Evidence::fitted) << law->info().name;
    depths.push_back(std::log(law->optimum(budget).layers));
  }
  ASSERT_EQ(depths.size(), 3u);
  const double mean = (depths[0] + depths[1] + depths[2]) / 3;
  double squares = 0;
  for (const double depth : depths) squares += (depth - mean) * (depth - mean);
  EXPECT_NEAR(std::sqrt(squares / 2), kLawSpread, 0.005);
}

TEST(Consensus, VotesFollowTheData) {
  // At 550M and 11B tokens all three have data and nearly equal votes.
  const Consensus three = consensus_at(550e6, 11e9);
  for (const Vote& vote : three.votes()) {
    EXPECT_TRUE(vote.inside());
    EXPECT_NEAR(vote.weight, 1.0 / 3, 0.1);
  }
  // At 30M and 600M tokens only Levine has.
  EXPECT_GT(weight_of(consensus_at(30e6, 600e6), "levine2020"), 0.85);
  // At 5B and 100B tokens only Liu has.
  EXPECT_GT(weight_of(consensus_at(5e9, 100e9), "liu2026"), 0.7);
  // Shorter or longer training than Gemstones' takes its vote away.
  EXPECT_LT(weight_of(consensus_at(1e9, 1e9), "gemstones2025"),
            weight_of(consensus_at(1e9, 20e9), "gemstones2025"));
  EXPECT_LT(weight_of(consensus_at(1e9, 15e12), "gemstones2025"),
            weight_of(consensus_at(1e9, 20e9), "gemstones2025"));
}

TEST(Consensus, OptimumHasTheLeastMeanPenalty) {
  const Budget budget = Budget::non_embedding(1.3e9);
  const double tokens = 26e9;
  const Consensus consensus = consensus_at(1.3e9, tokens);
  // The mean of the penalties by hand; Levine borrows Gemstones' curve.
  const LossSurface lent(*gemstones(), budget, tokens);
  const auto mean_penalty = [&](double layers) {
    double sum = 0;
    for (const Vote& vote : consensus.votes()) {
      sum += vote.weight * (vote.borrows
                                ? lent.penalty(layers * lent.best_layers() / vote.optimum.layers)
                                : LossSurface(*vote.law, budget, tokens).penalty(layers));
    }
    return sum;
  };
  const double best = consensus.optimum_after(budget, tokens).layers;
  EXPECT_NEAR(best, minimise_positive(mean_penalty, 5, 500), 1e-3 * best);
  const LossSurface surface(consensus, budget, tokens);
  EXPECT_NEAR(surface.penalty(20), (1 + mean_penalty(20)) / (1 + mean_penalty(best)) - 1, 1e-9);
}

TEST(Consensus, OfOneLawIsThatLaw) {
  const Budget budget = Budget::non_embedding(1e8);
  const auto levine = std::make_shared<LevineLaw>();
  const Consensus alone({levine}, gemstones(), budget, 2e9);
  EXPECT_EQ(alone.info().name, "levine2020");
  EXPECT_DOUBLE_EQ(alone.optimum(budget).layers, levine->optimum(budget).layers);
  const LossSurface surface(alone, budget, 2e9);
  EXPECT_NEAR(surface.penalty(surface.best_layers() * 1.2), surface.penalty(surface.best_layers()),
              5e-3);
  EXPECT_GE(surface.penalty(surface.best_layers() * 1.2), 0);
  EXPECT_GE(surface.penalty(surface.best_layers() / 1.2), 0);
  // A borrowed curve is never more than extrapolated.
  EXPECT_EQ(alone.evidence({1e8, 2e9, 24}), Evidence::fitted);
  EXPECT_EQ(alone.loss_evidence({1e8, 2e9, 24}), Evidence::extrapolated);
}

TEST(Consensus, RisesWithTheBudgetOnADenseGrid) {
  for (const double per_parameter : {2.0, 20.0, 200.0}) {
    double previous = 0;
    for (double size = 1e6; size <= 2e12; size *= 1.05) {
      const double tokens = per_parameter * size;
      const double layers =
          consensus_at(size, tokens).optimum_after(Budget::non_embedding(size), tokens).layers;
      EXPECT_GE(layers, previous * 0.999) << size << " at " << per_parameter;
      previous = layers;
    }
  }
}

}  // namespace
}  // namespace fathom::laws
