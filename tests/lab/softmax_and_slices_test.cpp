// Conclusions about softmax-free attention and partial width from planted results.
#include <gtest/gtest.h>

#include "lab/frame/claim.h"
#include "lab/frame/runner.h"
#include "lab/frame/verdict.h"

namespace fathom::lab {
namespace {

Setup untimed_setup(const std::string& claim) {
  Setup setup = resolve_setup(find_experiment(claim), {}, false);
  setup.time_limit = 1e9;
  return setup;
}

Judgement judged_full(const std::string& claim, const std::vector<Json>& results) {
  const Conclusion conclusion = find_experiment(claim).conclude(untimed_setup(claim), results);
  return judge(find_claim(claim), conclusion.measures, false);
}

Json planted_run(double loss, double accuracy = 0) {
  return {{"run", "x"},      {"status", "finished"}, {"seconds", 1},
          {"tokens", 1000},  {"loss", loss},         {"accuracy", accuracy},
          {"majority", 0.3}, {"parameters", 1000},   {"curve", Json::array()}};
}

/// Accuracy in the case task by kind (softmax, normalised, raw, linear) and rate; losses of
/// language models above softmax by kind, with what raw scores lose more at every depth.
std::vector<Json> free_results(const std::vector<std::vector<double>>& accuracies,
                               const std::vector<double>& gaps, double growth) {
  std::vector<Json> results;
  for (const auto& kind : accuracies) {
    for (const double accuracy : kind) {
      for (int seed = 0; seed < 3; ++seed) results.push_back(planted_run(1, accuracy));
    }
  }
  for (int depth = 0; depth < 3; ++depth) {
    for (std::size_t kind = 0; kind < gaps.size(); ++kind) {
      const double raw = kind == 2 ? growth * depth : 0;
      for (int seed = 0; seed < 3; ++seed) {
        results.push_back(planted_run(2 - 0.2 * depth + gaps[kind] + raw));
      }
    }
  }
  return results;
}

const std::vector<std::vector<double>> kEven{
    {0.3, 0.9, 0.97, 0.96}, {0.96, 0.97, 0.97, 0.96}, {0.3, 0.3, 0.96, 0.9}, {0.3, 0.3, 0.4, 0.4}};

TEST(SoftmaxFree, ComparesKindsAtTheirBestRates) {
  const Judgement even =
      judged_full("softmax-free", free_results(kEven, {0, 0.01, 0.1, 0.2}, 0.001));
  EXPECT_EQ(even.verdict, Verdict::holds);
  EXPECT_NEAR(*even.criteria[0].measure.value, 0, 1e-12);
  EXPECT_EQ(even.criteria[1].measure.value, 2);  // rates: four against two
  EXPECT_NEAR(*even.criteria[2].measure.value, 0.01, 1e-9);
  EXPECT_NEAR(*even.criteria[3].measure.value, 0.002, 1e-9);
}

TEST(SoftmaxFree, FailsWhereSoftmaxAloneSolves) {
  std::vector<std::vector<double>> alone(4, std::vector<double>(4, 0.5));
  alone[0] = kEven[0];
  const Judgement fails =
      judged_full("softmax-free", free_results(alone, {0, 0.1, 0.1, 0.2}, 0.02));
  for (const JudgedCriterion& each : fails.criteria) EXPECT_EQ(each.outcome, Outcome::fails);
}

TEST(SoftmaxFree, LeavesRatesOpenWhereNeitherSolves) {
  const std::vector<std::vector<double>> none(4, std::vector<double>(4, 0.3));
  const Judgement open = judged_full("softmax-free", free_results(none, {0, 0, 0, 0}, 0));
  EXPECT_EQ(open.criteria[1].outcome, Outcome::open);
}

TEST(SoftmaxFree, CountsADivergedRunAsUnsolved) {
  std::vector<Json> results = free_results(kEven, {0, 0.01, 0.1, 0.2}, 0);
  for (std::size_t run = 12; run < 24; ++run) {  // all of the normalised ones
    results[run]["status"] = "diverged";
    results[run]["accuracy"] = nullptr;
  }
  const Judgement judgement = judged_full("softmax-free", results);
  EXPECT_EQ(judgement.criteria[1].measure.value, -2);
  EXPECT_NEAR(*judgement.criteria[0].measure.value, 0.96 - 0.97, 1e-12);  // raw scores are left
}

/// Losses by arm: D = d, 2d, 4d, and the controls; the last of three rates is the best.
std::vector<Json> stream_results(const std::vector<double>& losses) {
  std::vector<Json> results;
  for (int base = 0; base < 2; ++base) {
    for (const double loss : losses) {
      for (const double worse : {0.2, 0.1, 0.0}) {
        for (int seed = 0; seed < 3; ++seed) {
          results.push_back(planted_run(loss + worse - 0.1 * base + 0.001 * seed));
        }
      }
    }
  }
  return results;
}

TEST(PartialWidthTrained, ComparesStreamsAtEqualFlops) {
  const Judgement gains =
      judged_full("partial-width-trained", stream_results({1.5, 1.4, 1.35, 1.45, 1.6}));
  EXPECT_EQ(gains.verdict, Verdict::holds);
  EXPECT_NEAR(*gains.criteria[0].measure.value, 0.1, 1e-9);
  EXPECT_NEAR(*gains.criteria[1].measure.value, 0.05, 1e-9);
  EXPECT_NEAR(*gains.criteria[2].measure.value, 0.05, 1e-9);  // 1.45 - 1.4 before 1.6 - 1.35
  const Judgement plain =
      judged_full("partial-width-trained", stream_results({1.5, 1.4, 1.42, 1.3, 1.6}));
  EXPECT_EQ(plain.criteria[1].outcome, Outcome::fails);
  EXPECT_EQ(plain.criteria[2].outcome, Outcome::fails);
}

TEST(PartialWidthTrained, SpendsEqualFlops) {
  const Conclusion conclusion = find_experiment("partial-width-trained")
                                    .conclude(untimed_setup("partial-width-trained"),
                                              stream_results({1.5, 1.4, 1.35, 1.45, 1.6}));
  const ExhibitTable& table = conclusion.tables.at(0);
  ASSERT_EQ(table.rows.size(), 10u);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const double flops = std::stod(table.rows[row][6]);
    const double plain = std::stod(table.rows[row / 5 * 5][6]);
    EXPECT_NEAR(flops / plain, 1, 0.005) << table.rows[row][1];
  }
  // By hand, d = 64: 6 FLOPs for every weight and token, and 12 for each of the (T + 1) / 2 pairs
  // that a token sees and each of the 64 columns of a layer's heads; 16 layers, T = 128.
  const double weights = 16 * 12 * 64 * 64 + 257 * 64;
  const double pairs = 16 * 64 * 2 * 64.5;
  EXPECT_NEAR(std::stod(table.rows[0][6]), 64 * 128 * 6 * (weights + pairs) / 1e9, 0.01);
}

}  // namespace
}  // namespace fathom::lab
