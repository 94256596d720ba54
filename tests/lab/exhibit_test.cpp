// What the page of a lab run shows: cells of tables, dots of charts and numbers in notes, claim by
// claim, from planted results whose numbers are counted by hand. (The computations behind them are
// held against other methods in the tests of their own.)
#include <gmpxx.h>

#include <cmath>

#include "lab/attention_matrices/softmax_hull.h"
#include "lab/hard_attention/hard_network.h"
#include "lab/hops/hop_network.h"
#include "lab/ranks/circuit_cut.h"
#include "planted_results.h"

namespace fathom::lab {
namespace {

using Row = std::vector<std::string>;
using Dots = std::vector<std::pair<double, double>>;

Dots dots_of(const ExhibitChart& chart, std::size_t series) {
  Dots dots;
  for (const ChartDot& dot : chart.series.at(series).dots) dots.emplace_back(dot.x, dot.y);
  return dots;
}

bool any_note_has(const Conclusion& conclusion, const std::string& words) {
  for (const std::string& note : conclusion.notes) {
    if (note.find(words) != std::string::npos) return true;
  }
  return false;
}

/// Two seeds of four layers.
Conclusion shown_collapse() {
  const Json first{{"direct", {0, -0.5, -2, -6, -24}},
                   {"split", {0, -0.5, -2, -6, -24}},
                   {"log10_residual", {-1, -3, -9, -27, -81}},
                   {"log10_factor", -0.5}};
  Json second = first;
  second["direct"] = {0, -1.5, -4, -12, -31.9};  // the last one is the arithmetic's floor
  second["split"] = {0, -1.5, -4.001, -12, -36};
  return concluded("rank-collapse", {Json::array({first, second})},
                   {{"layers", "4"}, {"seeds", "2"}});
}

TEST(Exhibits, OfCollapse) {
  const Conclusion shown = shown_collapse();
  // Exponents 6/2, 24/6, 4/1.5, 12/4; decades of layers 2 to 4: 22/2 and 32/2.
  EXPECT_EQ(shown.tables[0].columns, (Row{"set-up", "exponent", "decades per layer",
                                          "log10 rho, layer 1", "layer 2", "layer 4"}));
  EXPECT_EQ(shown.tables[0].rows[0],
            (Row{"bidirectional, scale 1", "3.00", "13.5", "-1.00", "-3.00", "-30.00"}));
  EXPECT_EQ(dots_of(shown.charts[0], 0), (Dots{{0, 0}, {1, -1}, {2, -3}, {3, -9}, {4, -30}}));
  EXPECT_EQ(shown.charts[0].series[0].dots[3].low, -10.5);
  EXPECT_EQ(shown.charts[0].series[0].dots[3].high, -7.5);
  EXPECT_TRUE(any_note_has(shown, "differs by at most 1.0e-03"));
}

TEST(Exhibits, OfCollapseLayerByLayer) {
  const Conclusion shown = shown_collapse();
  // Bounds: (3^l - 1)/2 times -0.5 plus 3^l times -1.
  const std::vector<Row> rows{{"1", "-1.00", "-1.25", "-0.75", "-", "-3.00", "-3.50"},
                              {"2", "-3.00", "-3.50", "-2.50", "2.667", "-9.00", "-11.00"},
                              {"3", "-9.00", "-10.50", "-7.50", "3.000", "-27.00", "-33.50"},
                              {"4", "-30.00", "-33.00", "-27.00", "3.500", "-81.00", "-101"}};
  EXPECT_EQ(shown.tables[1].rows, rows);
  const Json& layers = shown.data["layers"];
  EXPECT_EQ(layers[0]["exponent"], nullptr);
  EXPECT_EQ(layers[3]["exponent"], 3.5);
  EXPECT_EQ(layers[3]["count"], 2);
  EXPECT_EQ(layers[1]["log10_bound"], -11);
  EXPECT_EQ(layers[1]["vacuous"], false);
}

TEST(Exhibits, ABoundThatSaysNothingIsVacuousAndOneThatDoesNotApplyIsAbsent) {
  const Json run{{"direct", {0, -2, -6}},
                 {"split", {0, -2, -6}},
                 {"log10_residual", {1, 0, -1}},
                 {"log10_factor", 2}};
  const std::vector<GivenOption> two{{"layers", "2"}, {"seeds", "1"}};
  const Conclusion vacuous = concluded("rank-collapse", {Json::array({run})}, two);
  EXPECT_EQ(vacuous.tables[1].rows[1].back(), "vacuous");
  EXPECT_EQ(vacuous.data["layers"][1]["vacuous"], true);
  EXPECT_TRUE(any_note_has(vacuous, "the theorem's bound is vacuous here"));
  const Conclusion causal =
      concluded("rank-collapse", {Json::array({run})}, {two[0], two[1], {"mask", "causal"}});
  EXPECT_EQ(causal.tables[1].columns.back(), "log10 |X - mean|");
  EXPECT_FALSE(causal.data["layers"][1].contains("vacuous"));
}

TEST(Exhibits, OfPaths) {
  const auto seed = [](const std::vector<double>& residuals) {
    return Json{{"relative_error", 0}, {"paths", {1, 4, 4}}, {"relative_residual", residuals}};
  };
  const Conclusion shown =
      concluded("path-lengths", {seed({0.8, 0.5, 0.25}), seed({0.5, 0.25, 0.125})},
                {{"layers", "2"}, {"seeds", "2"}});
  EXPECT_EQ(shown.tables[0].rows,
            (std::vector<Row>{{"0", "1", "0.6500"}, {"1", "4", "0.3750"}, {"2", "4", "0.1875"}}));
  EXPECT_EQ(dots_of(shown.charts[0], 0), (Dots{{0, 0.65}, {1, 0.375}, {2, 0.1875}}));
}

TEST(Exhibits, OfHardAttention) {
  Json found{{"depths", {1, 1, 2, nullptr}},
             {"star_free", nullptr},
             {"monoid_size", nullptr},
             {"monoid_more_than", 77},
             {"witness", {{"in", "ab"}, {"out", ""}, {"depth", 6}, {"rechecked", true}}}};
  const std::vector<GivenOption> question{{"regex", "(ab)*"}, {"length", "4"}};
  const Conclusion own = concluded("hard-attention", {found}, question);
  EXPECT_EQ(own.tables[0].rows[0],
            (Row{"(ab)*", "since", "4", "> 6", "?", "> 77", "ab in, (empty) out at depth 6"}));
  EXPECT_EQ(own.tables[1].rows, (std::vector<Row>{{"2", "1"}, {"3", "2"}, {"4", "> 6"}}));
  EXPECT_TRUE(own.measures.empty());  // a language of one's own says nothing about the claim
  found["witness"]["rechecked"] = false;
  EXPECT_ANY_THROW(concluded("hard-attention", {found}, question));
  std::vector<Json> stairs;
  for (const int depth : {1, 1, 2, 2, 3, 2, 4, 3, 5, 3}) {
    stairs.push_back(
        {{"depths", {depth}}, {"star_free", true}, {"monoid_size", 9}, {"witness", nullptr}});
  }
  const Conclusion claim = concluded("hard-attention", stairs);
  EXPECT_EQ(claim.tables[0].rows[9], (Row{"STAIR_5", "since-until", "8", "3", "yes", "9", "-"}));
  EXPECT_EQ(dots_of(claim.charts[0], 0), (Dots{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}}));
  EXPECT_EQ(dots_of(claim.charts[0], 1), (Dots{{1, 1}, {2, 2}, {3, 2}, {4, 3}, {5, 3}}));
}

TEST(Exhibits, OfProgramsAndTheirNetworks) {
  const Json stair{{"k", 2},        {"depth", 2},          {"layers", 2},
                   {"width", 15},   {"weights", 1234},     {"words", 9841},
                   {"program", ""}, {"program_errors", 4}, {"network_errors", 8}};
  const Conclusion shown = concluded("b-rasp", {stair}, {{"stairs", "1"}});
  EXPECT_EQ(shown.tables[0].rows[0], (Row{"STAIR_2", "2", "2", "15", "1234", "9,841", "4", "8"}));
  for (std::size_t k = 1; k <= 3; ++k) {
    const HardNetwork network = compile_program(stair_program(k));
    EXPECT_EQ(network.width(), 6 * k + 3);
    std::size_t weights = 0;
    const auto count = [&](const auto& values) {
      for (const auto value : values) weights += value != 0 ? 1 : 0;
    };
    count(network.embedding.values);
    for (const HardLayer& layer : network.layers) {
      for (const HardHead& head : layer.heads) {
        for (const IntegerMatrix* matrix : {&head.query, &head.key, &head.value}) {
          count(matrix->values);
        }
      }
      count(layer.up.values);
      count(layer.bias);
      count(layer.down.values);
    }
    EXPECT_EQ(network.weights(), weights);
  }
}

TEST(Exhibits, OfHopsAndConnectivity) {
  const Json hard{{"positions", 100}, {"answered", 40}, {"errors", 0}, {"missed", 10}};
  const Conclusion hops =
      concluded("k-hop", {hard, {{"positions", 10}, {"errors", 1}}, hard}, {{"hops", "6"}});
  EXPECT_EQ(hops.tables[0].rows[0], (Row{"6", "4", "0", "100", "1", "10", "25 %"}));
  EXPECT_EQ(dots_of(hops.charts[0], 0), (Dots{{6, 4}}));
  EXPECT_EQ(hops.data["width"], build_hop_network(6, 4, 100, 4).width());
  EXPECT_TRUE(any_note_has(hops, "width 19 whatever k"));
  EXPECT_TRUE(any_note_has(hops, "at most 1e-12 of"));  // 100 e^-32 = 1.27e-12
  const auto graphs = [](int errors) { return Json{{"graphs", 100}, {"errors", errors}}; };
  const std::vector<GivenOption> eight{{"vertices", "8"}, {"graphs", "50"}};
  const Conclusion right = concluded("connectivity", {graphs(0), graphs(47)}, eight);
  EXPECT_EQ(right.tables[0].rows[0], (Row{"8", "4", "0", "2", "47", "100"}));
  EXPECT_EQ(dots_of(right.charts[0], 0), (Dots{{8, 4}}));
  const Conclusion wrong = concluded("connectivity", {graphs(1), graphs(47)}, eight);
  EXPECT_TRUE(dots_of(wrong.charts[0], 0).empty());
}

TEST(Exhibits, OfSingleHeads) {
  const auto fit = [](double divergence) { return Json{{"divergence", divergence}, {"steps", 9}}; };
  const Json ranks{{"bidirectional", {3, 3}}, {"causal", {2, 2}}, {"singular", 3}};
  const Conclusion fits =
      concluded("low-rank-bottleneck", {ranks, ranks, fit(0.5), fit(0.25), fit(2e-5), fit(4e-5)},
                {{"tokens", "4"}, {"head-size", "2"}, {"seeds", "2"}});
  EXPECT_EQ(fits.tables[0].rows[0], (Row{"bidirectional", "2", "2.5e-01", "3.8e-01", "5.0e-01"}));
  EXPECT_EQ(fits.tables[0].rows[1], (Row{"causal", "2", "2.0e-05", "3.0e-05", "4.0e-05"}));
  EXPECT_EQ(fits.charts[0].series[0].dots[0].y, 0.375);
  EXPECT_EQ(fits.charts[0].series[0].dots[0].low, 0.25);
  EXPECT_TRUE(any_note_has(fits, "head size 3 without a mask, 2 under a causal one"));
  const Conclusion hull = concluded("softmax-hull",
                                    {{{"floor", 1},
                                      {"gain", 2},
                                      {"variance", 5},
                                      {"normalised_error", 0.25},
                                      {"two_head_error", 0}}},
                                    {{"weights", "2,-1"}});
  EXPECT_EQ(hull.tables[0].rows[0], (Row{"2,-1", "1.00", "5.00", "0.250", "0"}));
  // Answering 0 costs the mean of (w.x)^2: for (2, -1, 0.5) over the eight inputs.
  const double costs = (1.5 * 1.5 + 0.5 * 0.5 + 3.5 * 3.5 + 2.5 * 2.5) / 4;
  EXPECT_DOUBLE_EQ(measure_hull({2, -1, 0.5}).variance, costs);
}

TEST(Exhibits, OfPerturbations) {
  std::vector<Json> results;
  for (const double layers : {3, 6, 12, 24, 60}) {
    for (const double factor : {2, 4}) {
      const Json change{{"change", factor * 2 * layers}};
      results.push_back({{"post", change},
                         {"pre", change},
                         {"profiled", change},
                         {"closed", change},
                         {"deepnorm", change}});
    }
  }
  const Conclusion shown = concluded("admin", results, {{"seeds", "2"}});
  EXPECT_EQ(shown.tables[0].rows[0],
            (Row{"post-norm", "18.0", "36.0", "72.0", "144", "360", "1.00 (1.00 to 1.00)"}));
  const ChartDot& dot = shown.charts[0].series[0].dots[0];
  EXPECT_EQ(dot.x, 6);
  EXPECT_EQ(dot.y, 18);
  EXPECT_NEAR(*dot.high, 18 + 12.7062 * 6, 1e-3);  // t(0.975, 1), 12 and 24 about their mean
  EXPECT_TRUE(any_note_has(shown, "epsilon = 0.001"));
  EXPECT_TRUE(any_note_has(shown, "over 2 seeds"));
}

TEST(Exhibits, OfTheTheorems) {
  const Conclusion own =
      concluded("theorem-1", planted_ranks({5}), {{"layers", "1"}, {"width", "4"}});
  EXPECT_EQ(own.tables[0].rows[0], (Row{"1", "4", "1", "1.65", "5", "5.00", "12,345", "exact"}));
  const std::size_t parts = find_experiment("theorem-1").plan(planted_setup("theorem-1")).size();
  const Conclusion list = concluded("theorem-1", planted_ranks(std::vector<std::size_t>(parts, 3)));
  const Dots upper = dots_of(list.charts[0], 0);  // d + 1
  ASSERT_EQ(upper.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    const double width = 4 + 2 * static_cast<double>(i);
    EXPECT_EQ(upper[i].first, width);
    EXPECT_NEAR(upper[i].second, width + 1, 1e-9);
  }
  EXPECT_EQ(dots_of(list.charts[0], 1), (Dots{{4, 3}, {6, 3}, {8, 3}, {10, 3}, {12, 3}}));
}

TEST(Exhibits, OfTheUpperBound) {
  const lab::Setup setup = planted_setup("theorem-2-upper", {{"layers", "7"}, {"width", "8"}});
  const Experiment& experiment = find_experiment("theorem-2-upper");
  const Json found = experiment.plan(setup).front().compute([](double) {});
  // binom(546 + 36, 36): half of C = (3^7 - 1)/2 = 1093, and 36 entries of a Gram matrix.
  mpz_class blocks;
  mpz_bin_uiui(blocks.get_mpz_t(), 546 + 36, 36);
  EXPECT_NEAR(found["log3_half_blocks"], std::log(blocks.get_d()) / std::log(3.0), 1e-9);
  const Conclusion shown = experiment.conclude(setup, {found});
  EXPECT_EQ(shown.tables[0].rows[0], (Row{"7", "8", "113.0", "120.5", "122.0", "1e54"}));
  EXPECT_EQ(shown.charts[0].series[1].dots[0].y, found["log3_rmax"].get<double>());
}

TEST(Exhibits, OfTheCorollary) {
  const Json widths{
      {{"layers", 2}, {"paper", 2e17}, {"log10_printed", 15}, {"log10_multiset", 17}},
      {{"layers", 4}, {"paper", nullptr}, {"log10_printed", 1}, {"log10_multiset", 2}}};
  const Conclusion shown = concluded("corollary-1", {{{"widths", widths}}});
  EXPECT_EQ(shown.tables[0].rows[0], (Row{"2", "2e+17", "1.00e+15", "1.00e+17"}));
  EXPECT_EQ(shown.tables[0].rows[1], (Row{"4", "-", "10.0", "100"}));
}

TEST(Exhibits, OfMasksResidualsAndHeads) {
  const std::size_t parts =
      find_experiment("partition-invariance").plan(planted_setup("partition-invariance")).size();
  std::vector<std::size_t> ranks(parts, 7);
  for (std::size_t i = 0; i < 5; ++i) ranks[parts - 5 + i] = 10 * (i + 1);
  const Conclusion masks = concluded("partition-invariance", planted_ranks(ranks));
  EXPECT_EQ(masks.tables[1].rows[4], (Row{"12", "50"}));
  EXPECT_EQ(dots_of(masks.charts[0], 0), (Dots{{4, 10}, {6, 20}, {8, 30}, {10, 40}, {12, 50}}));
  EXPECT_EQ(dots_of(masks.charts[0], 1)[0].second, 3 * 3 * 3 * 3);  // (d + H)^C
  EXPECT_EQ(masks.tables[0].rows[0], (Row{"none", "1", "4", "2", "4", "6", "7 (0011)"}));
  const Conclusion residuals = concluded("residuals", planted_ranks({18, 20}), {{"width", "2"}});
  EXPECT_EQ(residuals.tables[0].rows[0], (Row{"2", "2", "1", "18", "20"}));
  const Conclusion heads = concluded("heads", planted_ranks({110, 120, 85}), {{"width", "4"}});
  EXPECT_EQ(dots_of(heads.charts[0], 0), (Dots{{1, 110}, {2, 120}, {4, 85}}));
}

TEST(Exhibits, OfTheDefectAndOfSlices) {
  const auto width = [](int d, int forms, int missing) {
    return Json{{"width", d},         {"forms", forms},        {"missing", missing},
                {"zeros", 4},         {"conditions", missing}, {"evaluations", 20},
                {"not_vanishing", 1}, {"control", 1}};
  };
  const Conclusion defect = concluded("three-layer-defect", {width(4, 680, 4), width(5, 3060, 56),
                                                             width(6, 11628, 421), Json(675)});
  EXPECT_EQ(defect.tables[0].rows[0], (Row{"4", "680", "4", "4", "4", "4", "1 of 20", "5"}));
  EXPECT_EQ(defect.tables[0].rows[2],
            (Row{"6", "11,628", "421", "421", "421", "4", "1 of 20", "-"}));
  const std::vector<GivenOption> slices{{"slice", "2"}, {"width", "4"}, {"stride", "1"}};
  const Conclusion known = concluded("partial-width", planted_ranks({12, 10, 1999}), slices);
  EXPECT_EQ(known.tables[0].rows[0], (Row{"2", "2", "4", "1", "10", "12", "1,999"}));
  EXPECT_NEAR(measured(known, "gain"), 1.2, 1e-12);
  std::vector<Json> bounds = planted_ranks({12, 10, 1999});
  bounds[1] = planted_rank(12, exact::RankStatus::at_least);
  const Conclusion open = concluded("partial-width", bounds, slices);
  EXPECT_EQ(open.tables[0].rows[0][4], "at least 12");
  EXPECT_TRUE(open.measures.empty());  // 12 of at least 12 is no ratio
}

TEST(Exhibits, OfCircuits) {
  const Conclusion conv = concluded("convnet-rank", planted_ranks({4, 2, 5}),
                                    {{"channels", "2"}, {"inputs", "3"}, {"positions", "4"}});
  EXPECT_EQ(conv.tables[0].rows[0], (Row{"2", "3", "4", "4 (4)", "2 (2)", "5 (4)"}));
  const std::size_t parts =
      find_experiment("convnet-rank").plan(planted_setup("convnet-rank")).size();
  std::vector<std::size_t> ranks(parts, 4);
  ranks[parts - 140] = 2;
  const Conclusion cuts = concluded("convnet-rank", planted_ranks(ranks));
  EXPECT_EQ(cuts.tables[1].rows[0][3], "2 (1), 4 (34)");
  // Cuts of 2, 4, 8 and 16 belong to 1, 2, 24 and 8 partitions; 0001111 0.. is the first, cut 2.
  EXPECT_EQ(cuts.tables[1].rows[0][4], "32");
  const Conclusion recurrent =
      concluded("recurrent-rank", planted_ranks({5}),
                {{"layers", "2"}, {"channels", "3"}, {"inputs", "2"}, {"positions", "4"}});
  EXPECT_EQ(recurrent.tables[0].rows[0], (Row{"2", "3", "2", "4", "5", "at least 3"}));
  const Json share{{"languages", 1000},
                   {"star_free", 4},
                   {"settled", 5},
                   {"disagreements", 1},
                   {"largest_depth", 2}};
  const Conclusion languages = concluded("star-free", std::vector<Json>(6, share));
  EXPECT_EQ(languages.tables[0].rows[2], (Row{"3", "4,000", "16", "20", "4"}));
  EXPECT_TRUE(any_note_has(languages, "at lengths 7 and 10, and at most 6"));
}

}  // namespace
}  // namespace fathom::lab
