// What the claims on separation ranks conclude from planted ranks, and the least cut of a circuit
// against every choice of sides.
#include <algorithm>
#include <cmath>

#include "exact/partition.h"
#include "lab/ranks/circuit_cut.h"
#include "planted_results.h"

namespace fathom::lab {
namespace {

TEST(TheoremConclusion, CountsRanksOutsideThePrintedBounds) {
  // L = 1, d = 4, H = 1: between 3^((1/3)(log3 3 + 1 - log3 2)) = 1.65 and (4 + 1)^1.
  const auto of = [](std::size_t rank) {
    return concluded("theorem-1", planted_ranks({rank}), {{"layers", "1"}, {"width", "4"}});
  };
  EXPECT_EQ(measured(of(5), "above"), 0);
  EXPECT_EQ(measured(of(6), "above"), 1);
  EXPECT_EQ(measured(of(2), "below"), 0);
  EXPECT_EQ(measured(of(1), "below"), 1);
}

TEST(TheoremConclusion, WidthOneFollowsItsLaw) {
  std::vector<std::size_t> ranks(
      find_experiment("theorem-2").plan(planted_setup("theorem-2")).size(), 2);
  const std::vector<std::size_t> law{2, 5, 14, 41, 122, 365};  // (3^L + 1)/2
  std::copy(law.begin(), law.end(), ranks.begin());
  EXPECT_EQ(measured(concluded("theorem-2", planted_ranks(ranks)), "width-1"), 0);
  ranks[3] = 40;
  EXPECT_EQ(measured(concluded("theorem-2", planted_ranks(ranks)), "width-1"), 1);
}

TEST(CorollaryConclusion, TheWorstFactorEitherWayCounts) {
  const auto row = [](int layers, Json paper, double printed, double multiset) {
    return Json{{"layers", layers},
                {"paper", std::move(paper)},
                {"log10_printed", std::log10(printed)},
                {"log10_multiset", std::log10(multiset)}};
  };
  const Json found{
      {"widths", {row(2, 2e17, 1e17, 2e17), row(3, 2e5, 8e5, 3e5), row(4, nullptr, 1, 1)}}};
  const Conclusion conclusion = concluded("corollary-1", {found});
  EXPECT_NEAR(measured(conclusion, "printed"), 4, 1e-9);
  EXPECT_NEAR(measured(conclusion, "multiset"), 1.5, 1e-9);
}

TEST(InvarianceConclusion, CountsDifferentRanksAndTheLastLength) {
  const Conclusion own = concluded("partition-invariance", planted_ranks({18, 37, 26}),
                                   {{"positions", "4"}, {"mask", "causal"}});
  EXPECT_EQ(measured(own, "causal"), 3);
  EXPECT_EQ(own.tables[0].rows[0].back(), "18 (0011), 26 (0110), 37 (0101)");
  const std::size_t parts =
      find_experiment("partition-invariance").plan(planted_setup("partition-invariance")).size();
  std::vector<std::size_t> ranks(parts, 7);
  ranks.back() = 134;
  const Conclusion all = concluded("partition-invariance", planted_ranks(ranks));
  EXPECT_EQ(measured(all, "free"), 1);
  EXPECT_EQ(measured(all, "causal"), 1);
  EXPECT_EQ(measured(all, "bound"), 134);
}

TEST(ResidualAndHeadConclusions, CompareNeighbours) {
  EXPECT_EQ(measured(concluded("residuals", planted_ranks({18, 18}), {{"width", "2"}}), "changed"),
            0);
  EXPECT_EQ(measured(concluded("residuals", planted_ranks({18, 20}), {{"width", "2"}}), "changed"),
            1);
  const Conclusion heads = concluded("heads", planted_ranks({110, 120, 85}), {{"width", "4"}});
  EXPECT_EQ(measured(heads, "rises"), 0.5);
  EXPECT_EQ(heads.tables[0].rows[0].back(), "110 (1), 120 (2), 85 (4)");
}

TEST(DefectConclusion, ComparesEveryDimensionWithTheProof) {
  const auto width = [](int d, int forms, int missing, int conditions) {
    return Json{{"width", d},
                {"forms", forms},
                {"missing", missing},
                {"zeros", 4},
                {"conditions", conditions},
                {"evaluations", 20},
                {"not_vanishing", d - 4},
                {"control", 1}};
  };
  // d = 5 misses one condition; elimination at d = 4 finds 675 of 680 forms: 5 missing, not 4.
  const Conclusion conclusion = concluded(
      "three-layer-defect",
      {width(4, 680, 4, 4), width(5, 3060, 56, 55), width(6, 11628, 421, 421), Json(675)});
  EXPECT_EQ(measured(conclusion, "dimension"), 2);
  EXPECT_EQ(measured(conclusion, "vanishing"), 3);
  EXPECT_NEAR(measured(conclusion, "control"), 3.0 / 60, 1e-12);
}

TEST(PartialWidthConclusion, TakesTheLeastRatioOfEachKind) {
  std::vector<std::size_t> ranks;
  // D = 2d: slices, width d, width D; D = 4d: slices, width d; disjoint: as D = 2d.
  for (int group = 0; group < 3; ++group) {
    for (const std::size_t rank : {12, 10, 99, 18, 10, 5, 10, 99}) ranks.push_back(rank);
  }
  for (const std::size_t rank : {11, 10, 99, 22, 10, 9, 10, 99}) ranks.push_back(rank);
  const Conclusion conclusion = concluded("partial-width", planted_ranks(ranks));
  EXPECT_NEAR(measured(conclusion, "gain"), 1.1, 1e-12);
  EXPECT_NEAR(measured(conclusion, "further"), 1.5, 1e-12);
  EXPECT_NEAR(measured(conclusion, "disjoint"), 0.5, 1e-12);
}

TEST(RecurrentConclusion, MeetsOneLayerAndBoundsTwo) {
  const auto of = [](const char* layers, std::size_t rank) {
    return concluded("recurrent-rank", planted_ranks({rank}),
                     {{"layers", layers}, {"channels", "3"}, {"inputs", "2"}, {"positions", "4"}});
  };
  EXPECT_EQ(measured(of("1", 3), "shallow"), 0);  // min(3, 2^2)
  EXPECT_EQ(measured(of("1", 4), "shallow"), 1);
  EXPECT_EQ(measured(of("2", 3), "deep"), 0);  // binom(2 + 2 - 1, 2)
  EXPECT_EQ(measured(of("2", 2), "deep"), 1);
}

/// The least cut by trying every choice of sides for the convolutions of four positions.
double brute_cut(const std::string& partition, double channels, double inputs) {
  double least = 1e9;
  for (unsigned sides = 0; sides < 1U << 7; ++sides) {
    const auto side = [&](unsigned convolution) { return (sides >> convolution & 1) != 0; };
    double cost = 1;
    for (unsigned j = 0; j < 4; ++j) cost *= side(j) == (partition[j] == '1') ? 1 : inputs;
    // Products of channels: (0, 1) to 4, (2, 3) to 5, and (4, 5) to the output's form, 6.
    for (const auto& [a, b, above] : {std::array{0U, 1U, 4U}, {2U, 3U, 5U}, {4U, 5U, 6U}}) {
      cost *= side(a) == side(above) && side(b) == side(above) ? 1 : channels;
    }
    least = std::min(least, cost);
  }
  return least;
}

TEST(CircuitCut, IsTheLeastOverAllChoicesOfSides) {
  for (const std::string partition : {"0011", "0101", "0110", "0111", "0100", "0001"}) {
    for (const std::size_t channels : {1, 2, 3, 5, 30}) {
      for (const std::size_t inputs : {1, 2, 3, 7}) {
        EXPECT_EQ(least_cut(partition, channels, inputs),
                  brute_cut(partition, static_cast<double>(channels), static_cast<double>(inputs)))
            << partition << " " << channels << " " << inputs;
      }
    }
  }
  // By hand: pairs 00 01 01 11 are cut in the two middle pairs and once at the top.
  EXPECT_EQ(least_cut("00010111", 2, 3), 8);
  EXPECT_EQ(least_cut("01010101", 2, 3), 16);
  EXPECT_EQ(least_cut("00001111", 2, 3), 2);
}

TEST(ConvConclusion, CountsRanksThatAreNotTheFormula) {
  const Conclusion own = concluded("convnet-rank", planted_ranks({4, 2, 5}),
                                   {{"channels", "2"}, {"inputs", "3"}, {"positions", "4"}});
  EXPECT_EQ(measured(own, "wrong"), 1);  // 2^2, min(2, 2^2) and, by mirror pooling, 2^2
  const std::size_t parts =
      find_experiment("convnet-rank").plan(planted_setup("convnet-rank")).size();
  std::vector<std::size_t> ranks(parts - 140, 1);  // 35 partitions of four circuits come last
  for (const auto& [channels, inputs] : {std::pair{2, 2}, {3, 2}, {2, 3}, {3, 3}}) {
    for (const std::string& partition : exact::balanced_partitions(8)) {
      if (partition[0] != '0') continue;
      ranks.push_back(static_cast<std::size_t>(least_cut(partition, channels, inputs)));
    }
  }
  EXPECT_EQ(measured(concluded("convnet-rank", planted_ranks(ranks)), "partitions"), 0);
  ++ranks.back();
  EXPECT_EQ(measured(concluded("convnet-rank", planted_ranks(ranks)), "partitions"), 1);
}

}  // namespace
}  // namespace fathom::lab
