// Claims about loss by depth: curves with known bends and crossings, and planted grids of runs.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "lab/default_corpus.h"
#include "lab/frame/claim.h"
#include "lab/frame/verdict.h"
#include "lab/trained/loss_grid.h"
#include "lab/trained/wide_deep_grid.h"

namespace fathom::lab {
namespace {

Setup full_setup(const std::string& claim) {
  Setup setup = resolve_setup(find_experiment(claim), {}, false);
  setup.time_limit = 1e9;
  return setup;
}

Json planted_loss(double loss) {
  return {{"run", "x"},   {"status", "finished"}, {"seconds", 1},          {"tokens", 1000},
          {"loss", loss}, {"best_loss", loss},    {"curve", Json::array()}};
}

Judgement judged_losses(const std::string& claim, const std::vector<Json>& results) {
  const Conclusion conclusion = find_experiment(claim).conclude(full_setup(claim), results);
  return judge(find_claim(claim), conclusion.measures, false);
}

TEST(LossCurve, BendsWhereItsTwoPiecesMeet) {
  LossCurve curve;
  for (const double x : {1, 2, 3, 4, 5, 6, 8, 12, 16}) {
    curve.push_back({x, x < 4.4 ? 3 - 0.2 * x : 3 - 0.2 * 4.4 - 0.01 * (x - 4.4)});
  }
  EXPECT_NEAR(bend_of(curve), 4.4, 0.051);
  EXPECT_DOUBLE_EQ(loss_at(curve, 2.5), 2.5);
  EXPECT_DOUBLE_EQ(loss_at(curve, 16), curve.back().loss);
  EXPECT_THROW(bend_of({{1, 1}, {2, 1}, {3, 1}}), InternalError);
}

TEST(LossCurve, CrossesInsideBeforeOrBeyond) {
  const LossCurve flat{{0, 1}, {10, 1}};
  const Crossing inside = crossing_of(flat, {{2, 1.5}, {12, 0.5}});
  EXPECT_EQ(inside.place, CrossingPlace::inside);
  EXPECT_NEAR(inside.x, 7, 0.01);
  EXPECT_EQ(crossing_of(flat, {{2, 0.9}, {12, 0.5}}).place, CrossingPlace::before);
  EXPECT_DOUBLE_EQ(crossing_of(flat, {{2, 0.9}, {12, 0.5}}).x, 2);
  EXPECT_EQ(crossing_of(flat, {{2, 2}, {12, 1.5}}).place, CrossingPlace::beyond);
  // Below, above and below again: only the last stretch counts.
  const Crossing last = crossing_of(flat, {{0, 0.5}, {4, 1.5}, {8, 0.5}, {10, 0.5}});
  EXPECT_NEAR(last.x, 6, 0.02);
}

/// Losses of the two-regimes grid that bend at `bend(width)`.
template <class Bend>
std::vector<Json> bent_results(const Bend& bend) {
  std::vector<Json> results;
  for (const double width : {32, 64, 128, 256}) {
    for (const double layers : {1, 2, 3, 4, 5, 6, 8, 12, 16}) {
      for (int seed = 0; seed < 3; ++seed) {
        const double below = std::min(layers, bend(width));
        const double beyond = std::max(layers - bend(width), 0.0);
        results.push_back(planted_loss(3 - 0.15 * std::log2(width) - 0.1 * below - 0.002 * beyond +
                                       0.0001 * seed));
      }
    }
  }
  return results;
}

TEST(TwoRegimes, AsksWhetherTheBendMovesWithTheWidth) {
  const auto log3 = [](double width) { return std::log(width) / std::log(3.0); };
  const Judgement theory = judged_losses("two-regimes", bent_results(log3));
  EXPECT_EQ(theory.criteria[0].outcome, Outcome::passes);
  EXPECT_NEAR(*theory.criteria[2].measure.value, log3(8), 0.11);
  EXPECT_EQ(theory.criteria[2].outcome, Outcome::passes);
  const Judgement fixed = judged_losses("two-regimes", bent_results([](double) { return 3.5; }));
  EXPECT_EQ(fixed.criteria[0].outcome, Outcome::passes);
  EXPECT_EQ(fixed.criteria[1].outcome, Outcome::fails);  // 1.5 layers off at width 256
  EXPECT_EQ(fixed.criteria[2].outcome, Outcome::fails);
}

/// The best depth of every amount of data; the equal-size arm prefers `equal` at both its amounts.
std::vector<Json> data_results(const std::vector<double>& best, double equal) {
  std::vector<Json> results;
  const auto add = [&](double layers, double wanted) {
    for (int run = 0; run < 6; ++run) {  // two rates, three seeds: the second rate is better
      results.push_back(planted_loss(2 + 0.1 * std::abs(std::log(layers / wanted)) +
                                     (run < 3 ? 0.05 * layers : 0)));
    }
  };
  for (const double wanted : best) {
    for (const double layers : {1, 2, 3, 4, 6, 12}) add(layers, wanted);
  }
  for (int amount = 0; amount < 2; ++amount) {
    for (const double layers : {1, 2, 3, 4, 12}) add(layers, equal);
  }
  return results;
}

TEST(DataAndDepth, FollowsTheBestDepthOverTheAmounts) {
  const Judgement grows = judged_losses("data-and-depth", data_results({2, 3, 4, 6}, 3));
  EXPECT_EQ(grows.verdict, Verdict::holds);
  EXPECT_EQ(grows.criteria[1].measure.value, 2);
  EXPECT_EQ(grows.criteria[2].measure.value, 4);
  EXPECT_EQ(grows.criteria[3].measure.value, 0);
  const Judgement falls = judged_losses("data-and-depth", data_results({6, 4, 4, 4}, 3));
  EXPECT_EQ(falls.verdict, Verdict::holds_in_part);
  EXPECT_EQ(falls.criteria[0].outcome, Outcome::fails);
  EXPECT_EQ(falls.criteria[1].outcome, Outcome::fails);
}

/// Accuracies by task and shape (eight layers, one, one of equal size, two) of softmax; with every
/// mechanism one layer and eight score the same but for linear attention, where one scores `linear`
/// more; long lists score 0.37, and their first token is worth 0.36.
std::vector<Json> wide_results(const std::vector<std::vector<double>>& accuracies, double linear) {
  const Setup setup = full_setup("wide-against-deep");
  std::vector<Json> results;
  const auto add = [&](double accuracy, std::size_t seed) {
    Json result = planted_loss(1);
    result["accuracy"] = accuracy + 0.001 * static_cast<double>(seed);
    result["majority"] = 0.1;
    result["first_token"] = 0.36;
    results.push_back(std::move(result));
  };
  for (const std::vector<double>& task : accuracies) {
    for (const double accuracy : task) {
      for (std::size_t seed = 0; seed < 3; ++seed) add(accuracy, seed);
    }
  }
  const std::vector<WideGrid> grids = wide_grids(setup);
  for (const train::RunSpec& spec : wide_specs(setup, grids[1])) {
    const bool better =
        spec.model.layers == 1 && spec.model.attention == engine::AttentionKind::linear;
    add(better ? 0.5 + linear : 0.5, spec.seed);
  }
  for (std::size_t run = 0; run < grids[2].runs(3); ++run) add(0.37, 0);
  Json timings = Json::array();
  for (const TimedModel& model : timed_models(setup)) {
    timings.push_back({{"parameters", 1000},
                       {"memory_bytes", 1000},
                       {"seconds", 0.1 * static_cast<double>(model.spec.model.layers)}});
  }
  results.push_back(std::move(timings));
  return results;
}

TEST(WideAgainstDeep, ComparesTaskByTask) {
  if (!default_corpus_is_installed()) GTEST_SKIP() << "the default corpus is not installed";
  const Judgement equal = judged_losses("wide-against-deep", wide_results({{0.6, 0.6, 0.6, 0.6},
                                                                           {0.7, 0.72, 0.7, 0.7},
                                                                           {0.5, 0.5, 0.5, 0.5},
                                                                           {0.9, 0.89, 0.9, 0.9}},
                                                                          0.2));
  EXPECT_EQ(equal.verdict, Verdict::holds);
  EXPECT_NEAR(*equal.criteria[5].measure.value, 0.02, 1e-12);  // 0.2 with one mechanism of ten
  EXPECT_NEAR(*equal.criteria[6].measure.value, 0.01, 1e-12);
  EXPECT_NEAR(*equal.criteria[7].measure.value, 8, 1e-12);
  const Judgement deep = judged_losses(
      "wide-against-deep",
      wide_results(
          {{0.8, 0.5, 0.5, 0.6}, {0.7, 0.7, 0.7, 0.7}, {0.5, 0.5, 0.5, 0.5}, {0.9, 0.9, 0.9, 0.9}},
          -0.2));
  EXPECT_EQ(deep.criteria[0].outcome, Outcome::fails);
  EXPECT_EQ(deep.criteria[1].outcome, Outcome::passes);
  EXPECT_NEAR(*deep.criteria[4].measure.value, -0.075, 1e-9);  // -0.3 on one task of four
  EXPECT_EQ(deep.criteria[5].outcome, Outcome::fails);
}

TEST(HeadSize, ComparesHeadsWithTheLength) {
  const auto results_of = [](double small, double gain) {
    std::vector<Json> results;
    for (const double length : {64, 128}) {
      for (double size = 8; size <= 128; size *= 2) {
        const bool eighth = 8 * size == length;
        const int seeds = !eighth ? 3 : length > 64 ? 96 : 24;
        for (int seed = 0; seed < seeds; ++seed) {
          results.push_back(planted_loss(0));
          const double lucky = seed % 3 == 0 ? 1 : small;  // one of three seeds
          results.back()["accuracy"] = size >= length ? 0.999 : eighth ? lucky : small;
        }
      }
    }
    for (int arm = 0; arm < 2; ++arm) {
      for (double size = 8; size <= 128; size *= 2) {
        for (int seed = 0; seed < 3; ++seed) {
          results.push_back(planted_loss(1.5 - (arm == 0 ? gain : -gain) * std::log2(size)));
        }
      }
    }
    return results;
  };
  const Judgement needed = judged_losses("head-size", results_of(0.4, 0.01));
  EXPECT_EQ(needed.criteria[0].outcome, Outcome::passes);
  EXPECT_EQ(needed.criteria[1].outcome, Outcome::passes);
  EXPECT_NEAR(*needed.criteria[1].measure.value, 0.6, 1e-9);   // (1 + 2 x 0.4) / 3
  EXPECT_NEAR(*needed.criteria[2].measure.value, 0.02, 1e-9);  // two doublings from 16 to 64
  EXPECT_EQ(needed.criteria[3].outcome, Outcome::fails);
  EXPECT_EQ(judged_losses("head-size", results_of(0.95, 0.01)).criteria[1].outcome, Outcome::fails);
}

TEST(HeadsByLayer, LooksWhereTheHeadsStand) {
  const auto results_of = [](int previous_layer, double between) {
    std::vector<Json> results;
    for (int seed = 0; seed < 3; ++seed) {
      Json result = planted_loss(1);
      result["distance_within"] = 0.2;
      result["distance_between"] = between;
      for (int layer = 0; layer < 6; ++layer) {
        for (int head = 0; head < 8; ++head) {
          const bool clear = layer == previous_layer && head == 3;
          result["heads"].push_back({{"layer", layer},
                                     {"head", head},
                                     {"role", clear ? "previous" : "mixed"},
                                     {"previous", clear ? 0.8 : 0.1},
                                     {"sink", 0.05 * layer},
                                     {"local", 0.3},
                                     {"broad", 0.7},
                                     {"induction", 0.1},
                                     {"duplicate", 0.1},
                                     {"contribution", 0.2},
                                     {"removal", 0.01}});
        }
      }
      results.push_back(std::move(result));
    }
    for (int seed = 0; seed < 3; ++seed) {  // brackets: one head of layer 2 finds 60 %
      Json result = planted_loss(1);
      result["accuracy"] = 1;
      result["brackets"] = {{0.2, 0.1}, {0.3, 0.6}, {0.0, 0.0}, {0.1, 0.1}};
      result["bracket_offset"] = 0.45;
      results.push_back(std::move(result));
    }
    return results;
  };
  const Judgement low = judged_losses("heads-by-layer", results_of(1, 0.3));
  EXPECT_EQ(low.verdict, Verdict::holds);
  EXPECT_NEAR(*low.criteria[4].measure.value, 0.15, 1e-12);
  const Judgement high = judged_losses("heads-by-layer", results_of(5, 0.1));
  EXPECT_EQ(high.criteria[1].outcome, Outcome::fails);
  EXPECT_EQ(high.criteria[3].outcome, Outcome::fails);
  const Judgement none = judged_losses("heads-by-layer", results_of(9, 0.3));
  EXPECT_EQ(none.criteria[0].outcome, Outcome::fails);
  EXPECT_EQ(none.criteria[1].outcome, Outcome::open);
}

}  // namespace
}  // namespace fathom::lab
