// What collapse, hard attention, hops, single heads and ADMIN conclude from planted results.
#include <cmath>

#include "planted_results.h"

namespace fathom::lab {
namespace {

/// A part of one seed with these values of log10 rho.
Json planted_course(const std::vector<double>& course, double log10_factor = 10) {
  return Json::array({{{"direct", course},
                       {"split", course},
                       {"log10_residual", std::vector<double>(course.size(), 0)},
                       {"log10_factor", log10_factor}}});
}

/// log10 rho is -2 e^l after l of twelve layers.
Json powers(double exponent) {
  std::vector<double> course{-2};
  for (int l = 1; l <= 12; ++l) course.push_back(course.back() * exponent);
  return planted_course(course);
}

/// log10 rho is -rate l.
Json line(double rate) {
  std::vector<double> course;
  for (int l = 0; l <= 12; ++l) course.push_back(-rate * l);
  return planted_course(course);
}

TEST(CollapseConclusion, TheScaleFarthestFromCubicSpeaksForAll) {
  // (4 beta H / sqrt d_qk) = 1e-1 and |X - mean| = 1e-1: the bound is 1e-4 after one layer. The
  // residual of 1 stands for itself, so all twelve layers violate it.
  Json small = powers(3);
  small[0]["log10_factor"] = -1;
  small[0]["log10_residual"][0] = -1;
  const Conclusion conclusion = concluded(
      "rank-collapse", {powers(3.2), powers(3.4), powers(2.9), powers(3.1), powers(1.2), small},
      {{"seeds", "1"}});
  EXPECT_NEAR(measured(conclusion, "exponent"), 3.4, 1e-12);
  EXPECT_NEAR(measured(conclusion, "limit"), 3.4, 1e-12);
  EXPECT_NEAR(measured(conclusion, "causal"), 1.2, 1e-12);
  EXPECT_EQ(measured(conclusion, "bound"), 12);
  EXPECT_EQ(conclusion.data["bound"]["vacuous"], 12);
  EXPECT_EQ(conclusion.data["exponent"]["count"], 2);  // -2 to -6.4 to -20.5; -65.5 is too deep
}

TEST(CollapseConclusion, RatesAreThoseOfTheSecondHalf) {
  const Conclusion conclusion = concluded(
      "masked-collapse", {line(0.5), line(0.4), line(0.3), line(0.2), line(0.1)}, {{"seeds", "1"}});
  EXPECT_NEAR(measured(conclusion, "rate"), 0.5, 1e-12);
  EXPECT_NEAR(measured(conclusion, "local"), 0.2, 1e-12);
  EXPECT_NEAR(measured(conclusion, "linear"), 1, 1e-12);
  EXPECT_NEAR(measured(conclusion, "exponent"), 12.0 / 11, 1e-12);
}

TEST(CollapseConclusion, TheLeastRhoOfEachKindCounts) {
  std::vector<Json> results;
  for (const double final : {-0.5, -1.0, -2.5, -1.5, -7.0, -40.0}) {
    results.push_back(line(-final / 12));
  }
  const Conclusion conclusion = concluded("skip-connections", results, {{"seeds", "1"}});
  EXPECT_NEAR(measured(conclusion, "skip"), -2.5, 1e-12);
  EXPECT_NEAR(measured(conclusion, "mlp"), -40, 1e-12);
}

TEST(PathConclusion, MeansOverSeedsAndTheLengthsThatDoNotFall) {
  const auto seed = [](double error, const std::vector<double>& residuals) {
    return Json{{"relative_error", error}, {"paths", {1, 4, 4}}, {"relative_residual", residuals}};
  };
  const Conclusion conclusion =
      concluded("path-lengths", {seed(1e-20, {0.8, 0.5, 0.8}), seed(1e-10, {0.6, 0.3, 0.2})},
                {{"layers", "2"}, {"seeds", "2"}});
  EXPECT_EQ(measured(conclusion, "sum"), 1e-10);
  EXPECT_EQ(measured(conclusion, "falls"), 1);
  EXPECT_NEAR(conclusion.data["lengths"][0]["relative_residual"], 0.7, 1e-12);
  EXPECT_NEAR(conclusion.data["lengths"][2]["relative_residual"], 0.5, 1e-12);
}

TEST(HardAttentionConclusion, CountsWrongDepthsAndFailedProofs) {
  std::vector<Json> results;
  for (const int depth : {1, 1, 2, 2, 3, 2, 4, 3, 5, 3}) {  // k = 1 to 5, since and both
    results.push_back({{"depths", {depth}},
                       {"star_free", true},
                       {"monoid_size", 2},
                       {"witness", {{"in", "a"}, {"out", ""}, {"depth", 0}, {"rechecked", true}}}});
  }
  const Conclusion right = concluded("hard-attention", results);
  EXPECT_EQ(measured(right, "since"), 0);
  EXPECT_EQ(measured(right, "since-until"), 0);
  EXPECT_EQ(measured(right, "proofs"), 0);
  results[4]["depths"] = {4};        // STAIR_3 with since
  results[9]["depths"] = {nullptr};  // STAIR_5 with both: more than 6
  results[7]["depths"] = {4};
  results[2]["witness"]["rechecked"] = false;
  const Conclusion wrong = concluded("hard-attention", results);
  EXPECT_EQ(measured(wrong, "since"), 1);
  EXPECT_EQ(measured(wrong, "since-until"), 2);
  EXPECT_EQ(measured(wrong, "proofs"), 1);
  EXPECT_EQ(wrong.tables[0].rows[9][3], "> 6");
}

TEST(StarFreeConclusion, AddsUpTheShares) {
  const Json share{{"languages", 10},
                   {"star_free", 4},
                   {"settled", 5},
                   {"disagreements", 1},
                   {"largest_depth", 2}};
  const Conclusion conclusion =
      concluded("star-free", std::vector<Json>(6, share));  // 1, 1 and 4 shares
  EXPECT_EQ(measured(conclusion, "disagreements"), 6);
  EXPECT_EQ(conclusion.tables[0].rows[2], (std::vector<std::string>{"3", "40", "16", "20", "4"}));
}

TEST(BraspConclusion, AddsUpErrorsAndShowsTheProgram) {
  const auto stair = [](int k, int depth, int errors) {
    return Json{{"k", k},
                {"depth", depth},
                {"layers", k},
                {"width", 9},
                {"weights", 17},
                {"words", 4},
                {"program", "x(i) = 1\nanswer(i) = 0\n"},
                {"program_errors", errors},
                {"network_errors", 2 * errors}};
  };
  const Conclusion conclusion =
      concluded("b-rasp", {stair(1, 1, 3), stair(2, 3, 4)}, {{"stairs", "2"}});
  EXPECT_EQ(measured(conclusion, "program"), 7);
  EXPECT_EQ(measured(conclusion, "network"), 14);
  EXPECT_EQ(measured(conclusion, "depth"), 1);
  EXPECT_EQ(conclusion.tables[1].rows[1], (std::vector<std::string>{"answer(i)", "0"}));
}

TEST(HopConclusion, SharesAreOfTheAnswersThatExist) {
  const auto hard = [](int errors, int missed) {
    return Json{{"positions", 100}, {"answered", 40}, {"errors", errors}, {"missed", missed}};
  };
  const std::vector<Json> results{
      hard(2, 1), hard(3, 1), {{"positions", 10}, {"errors", 1}}, hard(15, 10)};
  const Conclusion conclusion = concluded("k-hop", results, {{"hops", "3"}, {"sequences", "6000"}});
  EXPECT_EQ(measured(conclusion, "hard"), 5);
  EXPECT_EQ(measured(conclusion, "softmax"), 1);
  EXPECT_EQ(measured(conclusion, "depth"), 0);
  EXPECT_EQ(measured(conclusion, "shorter"), 0.25);
  EXPECT_EQ(conclusion.tables[0].rows[0],
            (std::vector<std::string>{"3", "3", "5", "200", "1", "10", "25 %"}));
}

TEST(ConnectivityConclusion, CountsErrorsOfTheFullDepthOnly) {
  std::vector<Json> results;
  for (const int errors : {0, 50, 2, 50, 0, 50, 1, 50, 0, 50}) {
    results.push_back({{"graphs", 200}, {"errors", errors}});
  }
  const Conclusion conclusion = concluded("connectivity", results);
  EXPECT_EQ(measured(conclusion, "enough"), 3);
  EXPECT_FALSE(measure_of(conclusion, "needed").value.has_value());
}

TEST(BottleneckConclusion, LooksAtBothSidesOfTheThreshold) {
  const auto fit = [](double divergence) { return Json{{"divergence", divergence}, {"steps", 9}}; };
  const Json ranks{{"bidirectional", {3, 3}}, {"causal", {2, 2}}, {"singular", 3}};
  const std::vector<Json> results{ranks,     fit(0.5),  fit(0.2),  fit(1e-9), fit(1e-8),
                                  fit(0.01), fit(1e-9), fit(1e-9), fit(1e-9)};
  const Conclusion conclusion =
      concluded("low-rank-bottleneck", results, {{"tokens", "4"}, {"seeds", "1"}});
  EXPECT_EQ(measured(conclusion, "rank"), 0);
  EXPECT_EQ(measured(conclusion, "sharp"), 1);   // n - 1 = 3 reaches every matrix
  EXPECT_EQ(measured(conclusion, "causal"), 1);  // 3 less 2
  EXPECT_EQ(measured(conclusion, "enough"), 1e-8);
  EXPECT_EQ(measured(conclusion, "stall"), 0.2);
  const Conclusion two =
      concluded("low-rank-bottleneck", {ranks, ranks, fit(0.3), fit(0.1), fit(0.5), fit(0.5)},
                {{"tokens", "4"}, {"head-size", "1"}, {"seeds", "2"}});
  EXPECT_NEAR(two.data["fits"][0]["divergence"], 0.2, 1e-12);  // the median of two
  EXPECT_EQ(measured(two, "stall"), 0.1);
}

TEST(HullConclusion, JudgesTheFirstTarget) {
  const auto target = [](double floor) {
    return Json{{"floor", floor},
                {"gain", 2},
                {"variance", 5},
                {"normalised_error", 0.25},
                {"two_head_error", 0}};
  };
  const Conclusion conclusion =
      concluded("softmax-hull", {target(1), target(9), target(9), target(9), target(9)});
  EXPECT_EQ(measured(conclusion, "floor"), 1);
  EXPECT_EQ(measured(conclusion, "normalised"), 0.25);
}

TEST(AdminConclusion, SlopesSeedBySeedWithStudentsInterval) {
  std::vector<Json> results;
  for (const double layers : {3, 6, 12, 24, 60}) {
    for (const double slope : {1.0, 1.2}) {
      const Json change{{"change", 5 * std::pow(2 * layers, slope)}};
      Json profiled = change;
      profiled["last_omega"] = layers == 24 ? 2.2 : 2.0;
      profiled["predicted_omega"] = 2.0;
      Json closed{{"change", 7}, {"fold_difference", layers == 6 ? 1e-6 : 1e-7}};
      results.push_back({{"post", change},
                         {"pre", change},
                         {"profiled", profiled},
                         {"closed", closed},
                         {"deepnorm", change}});
    }
  }
  const Conclusion conclusion = concluded("admin", results, {{"seeds", "2"}});
  const Measure& post = measure_of(conclusion, "post");
  EXPECT_NEAR(*post.value, 1.1, 1e-9);
  // t(0.975, 1) = 12.7062, the mean's deviation 0.1.
  EXPECT_NEAR(post.interval->low, 1.1 - 1.27062, 1e-4);
  EXPECT_NEAR(post.interval->high, 1.1 + 1.27062, 1e-4);
  EXPECT_NEAR(measured(conclusion, "closed"), 0, 1e-9);
  EXPECT_NEAR(measured(conclusion, "omega"), 0.1, 1e-9);
  EXPECT_EQ(measured(conclusion, "fold"), 1e-6);
  EXPECT_EQ(conclusion.data["schemes"][3]["changes"][0]["mean"], 7);
}

}  // namespace
}  // namespace fathom::lab
