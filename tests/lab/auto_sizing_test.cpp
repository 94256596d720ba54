// What is concluded about auto-sizing from planted results, and one small run in earnest.
#include <gtest/gtest.h>

#include "lab/frame/claim.h"
#include "lab/frame/runner.h"
#include "lab/frame/verdict.h"

namespace fathom::lab {
namespace {

constexpr int kLayers = 6;

/// A run with a share of its parameters and units taken out.
Json sized_run(double loss, double share) {
  Json result{{"run", "x"},
              {"status", "early_stopped"},
              {"seconds", 1},
              {"tokens", 1000},
              {"loss", loss + 1},
              {"best_loss", loss},
              {"parameters", 1000},
              {"left", 1000 * (1 - share)},
              {"difference", 1e-12},
              {"curve", Json::array()},
              {"units", Json::array()}};
  for (int layer = 0; layer < kLayers; ++layer) {
    result["units"].push_back({{"heads", true}, {"all", 8}, {"idle", layer == 0 ? 8 : 2}});
    result["units"].push_back({{"heads", false}, {"all", 512}, {"idle", layer == 5 ? 512 : 100}});
  }
  return result;
}

/// Two arms of four strengths after the run without penalty, for each of three seeds; the first
/// arm's losses and shares are given.
std::vector<Json> sizing_results(const std::vector<double>& losses,
                                 const std::vector<double>& shares) {
  std::vector<Json> results;
  for (int seed = 0; seed < 3; ++seed) {
    results.push_back(sized_run(1.5, 0));
    for (int arm = 0; arm < 2; ++arm) {
      for (std::size_t i = 0; i < 4; ++i) {
        results.push_back(arm == 0 ? sized_run(losses[i], shares[i]) : sized_run(1.9, 0.8));
      }
    }
  }
  return results;
}

Conclusion sizing_conclusion(const std::vector<Json>& results) {
  Setup setup = resolve_setup(find_experiment("auto-sizing"), {}, false);
  setup.time_limit = 1e9;
  return find_experiment("auto-sizing").conclude(setup, results);
}

Judgement judged_sizing(const std::vector<Json>& results) {
  return judge(find_claim("auto-sizing"), sizing_conclusion(results).measures, false);
}

TEST(AutoSizing, TakesTheLargestShareThatCostsNothing) {
  const Judgement judgement =
      judged_sizing(sizing_results({1.49, 1.5, 1.509, 1.6}, {0.1, 0.2, 0.45, 0.7}));
  EXPECT_EQ(judgement.verdict, Verdict::holds);
  EXPECT_NEAR(*judgement.criteria[0].measure.value, 0.45, 1e-9);
  const Judgement costly =
      judged_sizing(sizing_results({1.49, 1.5, 1.52, 1.6}, {0.1, 0.2, 0.45, 0.7}));
  EXPECT_NEAR(*costly.criteria[0].measure.value, 0.2, 1e-9);
  EXPECT_EQ(costly.criteria[0].outcome, Outcome::fails);
}

TEST(AutoSizing, RefusesACompactionThatIsNotExact) {
  std::vector<Json> results = sizing_results({1.49, 1.5, 1.5, 1.6}, {0.1, 0.2, 0.45, 0.7});
  results[10]["difference"] = 1e-5;
  EXPECT_EQ(judged_sizing(results).criteria[1].outcome, Outcome::fails);
}

TEST(AutoSizing, ShowsWhatIsLeftByLayer) {
  const Conclusion conclusion =
      sizing_conclusion(sizing_results({1.49, 1.5, 1.5, 1.6}, {0.1, 0.2, 0.45, 0.7}));
  const ExhibitTable& table = conclusion.tables.at(0);
  ASSERT_EQ(table.rows.size(), 9u);
  EXPECT_EQ(table.rows[0][0], "none");
  EXPECT_EQ(table.rows[1][1], "0.5");
  EXPECT_EQ(table.rows[1][4], "0.0 6.0 6.0 6.0 6.0 6.0");
  EXPECT_EQ(table.rows[1][5], "412 412 412 412 412 0");
  EXPECT_EQ(table.rows[1][6], "3");  // one feed-forward for each seed
}

}  // namespace
}  // namespace fathom::lab
