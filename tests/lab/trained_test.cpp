// Trained claims: a part is a run in its folder, and conclusions follow from planted results.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "lab/default_corpus.h"
#include "lab/frame/claim.h"
#include "lab/frame/runner.h"
#include "lab/frame/verdict.h"
#include "lab/trained/training_part.h"
#include "lab/trained/wide_deep_grid.h"
#include "scratch_folder.h"

namespace fathom::lab {
namespace {

Setup setup_of(const std::string& claim, bool quick) {
  Setup setup = resolve_setup(find_experiment(claim), {}, quick);
  setup.time_limit = 1e9;
  return setup;
}

Json planted_result(double loss) {
  return {{"run", "x"},
          {"status", "finished"},
          {"seconds", 1},
          {"tokens", 1000},
          {"loss", loss},
          {"accuracy", std::exp(-loss)},
          {"groups", Json::array()},
          {"curve", Json::array()}};
}

Judgement judged(const std::string& claim, const Setup& setup, const std::vector<Json>& results) {
  const Conclusion conclusion = find_experiment(claim).conclude(setup, results);
  return judge(find_claim(claim), conclusion.measures, false);
}

Outcome outcome(const Judgement& judgement, const std::string& id) {
  for (const JudgedCriterion& each : judgement.criteria) {
    if (each.criterion->id == id) return each.outcome;
  }
  throw InternalError("no criterion " + id);
}

TEST(TrainingPart, IsARunThatIsNotRepeatedAndGoesOnAfterAStop) {
  const ScratchFolder folder;
  lab::Setup setup;
  setup.folder = folder / "lab";
  const train::RunSpec spec = lab_run_spec(
      setup,
      "[data]\ntask = \"sort\"\neval_tokens = 160\n[model]\nlayers = 1\nwidth = 16\nheads = 2\n"
      "context = 8\n[train]\nsteps = 40\nbatch = 2\neval_every = 20\n");
  const auto parts = training_parts(setup, {spec});
  ASSERT_EQ(parts.size(), 1u);
  int ticks = 0;
  EXPECT_THROW(parts[0].compute([&](double) {
    if (++ticks == 2) throw StoppedError("enough");
  }),
               StoppedError);
  const Json first = parts[0].compute([](double) {});
  EXPECT_EQ(first.at("status"), "finished");
  EXPECT_EQ(first.at("curve").size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(setup.folder / "runs" / first.at("run").get<std::string>() /
                                      "record.json"));
  const Json again = parts[0].compute([](double) { FAIL() << "the run is trained again"; });
  EXPECT_EQ(again, first);
  // A run that was never stopped ends with the same numbers.
  setup.folder = folder / "whole";
  EXPECT_EQ(training_parts(setup, {spec})[0].compute([](double) {}).at("loss"), first.at("loss"));
}

TEST(TrainingPart, MayBeAWorkerProcess) {
  const ScratchFolder folder;
  lab::Setup setup;
  const train::RunSpec spec = lab_run_spec(
      setup,
      "[data]\ntask = \"sort\"\neval_tokens = 160\n[model]\nlayers = 1\nwidth = 16\nheads = 2\n"
      "context = 8\n[train]\nsteps = 20\nbatch = 2\n");
  setup.folder = folder / "here";
  const Json here = training_parts(setup, {spec})[0].compute([](double) {});
  setup.folder = folder / "worker";
  setup.program = std::filesystem::path(FATHOM_BINARY_DIR) / "fathom";
  const Json worker = training_parts(setup, {spec})[0].compute([](double) {});
  EXPECT_EQ(worker.at("run"), here.at("run"));
  EXPECT_EQ(worker.at("loss"), here.at("loss"));
  setup.folder = folder / "stopped";
  const train::RunSpec longer = lab_run_spec(setup, to_toml(spec) + "\n");
  EXPECT_THROW(
      training_parts(setup, {longer})[0].compute([](double) { throw StoppedError("now"); }),
      StoppedError);
}

TEST(TrainingPart, RefusesDaysOnAProcessor) {
  const lab::Setup setup = resolve_setup(find_experiment("k-hop-trained"), {}, false);
  try {
    find_experiment("k-hop-trained").plan(setup);
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("--device cuda, or --quick"), std::string::npos);
  }
}

Json planted_head(int layer, double prefix, double copying, double previous) {
  return {{"layer", layer},
          {"head", 0},
          {"prefix", prefix},
          {"duplicate", 0.0},
          {"copying", copying},
          {"copying_positive", copying},
          {"previous", previous},
          {"back", 1},
          {"back_attention", previous},
          {"shift", 1},
          {"shift_attention", prefix}};
}

/// Three seeds of one layer, of two, and of one with smeared keys.
std::vector<Json> induction_results() {
  std::vector<Json> results;
  for (int run = 0; run < 9; ++run) {
    Json result = planted_result(run < 3 ? 3.1 : 0.1);
    for (int step = 1; step <= 50; ++step) {
      const double sudden = step < 20 ? 3.2 : step < 24 ? 3.2 - 0.7 * (step - 19) : 0.1;
      result["curve"].push_back({80 * step, run < 3 ? 3.1 : sudden});
    }
    const bool two = run >= 3 && run < 6;
    result["heads"] = {planted_head(0, run < 6 ? 0.1 : 0.9, 0.2, two ? 0.9 : 0.1)};
    if (two) result["heads"].push_back(planted_head(1, 0.3, 0.9, 0.1));
    if (two) result["heads"].push_back(planted_head(1, 0.8, 0.7, 0.1));
    results.push_back(std::move(result));
  }
  return results;
}

TEST(Induction, IsJudgedByLossesAndTheSteepestPart) {
  const lab::Setup setup = setup_of("induction", false);
  std::vector<Json> results = induction_results();
  EXPECT_EQ(judged("induction", setup, results).verdict, Verdict::holds);
  for (std::size_t run = 3; run < 6; ++run) {  // a slow, even fall is not sudden
    for (int step = 1; step <= 50; ++step) {
      results[run]["curve"][static_cast<std::size_t>(step - 1)][1] = 3.2 - 0.06 * step;
    }
  }
  EXPECT_EQ(outcome(judged("induction", setup, results), "sudden"), Outcome::fails);
  results[4]["loss"] = 1.0;
  EXPECT_EQ(outcome(judged("induction", setup, results), "two-layers"), Outcome::fails);
  results[7]["loss"] = 0.9;
  EXPECT_EQ(outcome(judged("induction", setup, results), "smeared"), Outcome::fails);
}

TEST(Induction, IsJudgedByTheHeadsOfEveryLayer) {
  const lab::Setup setup = setup_of("induction", false);
  std::vector<Json> results = induction_results();
  results[5]["heads"][2]["copying"] = 0.4;  // of the head that matches best
  results[4]["heads"][2]["prefix"] = 0.4;
  results[3]["heads"][0]["previous"] = 0.4;
  results[1]["heads"][0]["prefix"] = 0.3;
  const Judgement judgement = judged("induction", setup, results);
  for (const char* id : {"copying", "prefix", "previous", "one-prefix"}) {
    EXPECT_EQ(outcome(judgement, id), Outcome::fails) << id;
  }
  EXPECT_EQ(outcome(judgement, "smeared"), Outcome::passes);
}

/// Errors by k of a network that solves k up to `solved`.
Json hop_result(std::int64_t solved) {
  Json result = planted_result(1);
  for (std::int64_t k = 0; k <= 16; ++k) {
    result["groups"].push_back({{"value", k}, {"accuracy", k <= solved ? 0.99 : 0.3}});
  }
  return result;
}

/// The same with heads: layer l looks `mass` at the place 2^(l - 2) hops back.
Json watched_hop_result(std::int64_t solved, std::size_t layers, double mass) {
  Json result = hop_result(solved);
  for (std::size_t layer = 1; layer <= layers; ++layer) {
    Json row = Json::array();
    for (std::size_t power = 0; power < 5; ++power) {
      row.push_back(power + 2 == layer ? mass : 0.1);
    }
    result["hop_attention"].push_back(row);
  }
  return result;
}

/// `narrow` and `wide`: largest solved k for 2 to 6 layers of width 128 and 256.
std::vector<Json> hop_results(const std::vector<std::int64_t>& narrow,
                              const std::vector<std::int64_t>& wide, double mass) {
  std::vector<Json> results;
  for (int seed = 0; seed < 3; ++seed) {
    for (const std::int64_t each : {0, 1, 2, 4}) results.push_back(hop_result(each));
    for (std::size_t i = 0; i < 4; ++i) results.push_back(hop_result(narrow[i]));
  }
  for (int seed = 0; seed < 3; ++seed) {
    results.push_back(watched_hop_result(narrow[4], 6, mass));
    for (std::size_t i = 0; i < 5; ++i) results.push_back(watched_hop_result(wide[i], i + 2, mass));
  }
  return results;
}

TEST(HopTraining, ComparesTheLargestSolvedHopsWithTheTable) {
  const lab::Setup setup = setup_of("k-hop-trained", false);
  const std::vector<std::int64_t> doubling{2, 4, 8, 16, 16};
  const auto judge_narrow = [&](const std::vector<std::int64_t>& solved) {
    return judged("k-hop-trained", setup, hop_results(solved, doubling, 0.8));
  };
  EXPECT_EQ(judge_narrow({2, 4, 7, 12, 16}).verdict, Verdict::holds);
  EXPECT_EQ(judge_narrow({2, 5, 8, 16, 16}).criteria[0].measure.value,
            1.6);  // 16 is the largest k: the last step does not count
  const Judgement slow = judge_narrow({2, 2, 2, 2, 2});
  EXPECT_EQ(outcome(slow, "growth"), Outcome::fails);
  EXPECT_EQ(outcome(slow, "six"), Outcome::fails);
  EXPECT_EQ(slow.criteria[1].measure.value, 2);  // 4 layers below 3, 5 layers below 5
  const lab::Setup quick = setup_of("k-hop-trained", true);
  const Judgement small =
      judged("k-hop-trained", quick, {hop_result(0), hop_result(1), hop_result(2), hop_result(4)});
  EXPECT_EQ(outcome(small, "growth"), Outcome::open);
  EXPECT_EQ(outcome(small, "small-four"), Outcome::passes);
}

TEST(HopTraining, JudgesTheDoubleWidthByItself) {
  const lab::Setup setup = setup_of("k-hop-trained", false);
  const std::vector<std::int64_t> narrow{2, 4, 7, 12, 16};
  const Judgement slow = judged("k-hop-trained", setup, hop_results(narrow, {2, 2, 3, 6, 16}, 0.3));
  EXPECT_EQ(outcome(slow, "growth"), Outcome::passes);
  EXPECT_EQ(outcome(slow, "growth-256"), Outcome::fails);
  EXPECT_EQ(outcome(slow, "composes"), Outcome::fails);
  // Published around them: 4 layers 4 to 16, 5 layers 9 to 16.
  EXPECT_EQ(outcome(slow, "table-256"), Outcome::fails);
  for (const JudgedCriterion& each : slow.criteria) {
    if (each.criterion->id == "table-256") {
      EXPECT_EQ(each.measure.value, 2);
    }
  }
}

TEST(CycleTraining, FindsTheLeastDepthOfEverySize) {
  const lab::Setup setup = setup_of("connectivity-trained", false);
  const auto results_of = [](const std::vector<int>& least) {
    std::vector<Json> results;
    for (const int each : least) {
      for (int layers = 1; layers <= 5; ++layers) {
        for (int seed = 0; seed < 3; ++seed) {
          Json result = planted_result(0);
          result["accuracy"] = layers >= each && seed == 1 ? 0.97 : 0.6;
          results.push_back(std::move(result));
        }
      }
    }
    return results;
  };
  EXPECT_EQ(judged("connectivity-trained", setup, results_of({2, 3, 5})).verdict, Verdict::holds);
  EXPECT_EQ(outcome(judged("connectivity-trained", setup, results_of({3, 2, 6})), "monotone"),
            Outcome::fails);
  EXPECT_EQ(outcome(judged("connectivity-trained", setup, results_of({3, 6, 6})), "reached"),
            Outcome::fails);
}

TEST(CountingTraining, CountsLanguagesAtTheirDepth) {
  const lab::Setup setup = setup_of("counting-trained", true);
  std::vector<Json> results;
  for (int blocks = 3; blocks <= 5; ++blocks) {
    for (int layers = 1; layers <= 3; ++layers) {
      Json result = planted_result(0);
      result["sequence_accuracy"] = layers >= blocks - 2 ? 0.99 : 0.5;
      results.push_back(std::move(result));
    }
  }
  const Judgement judgement = judged("counting-trained", setup, results);
  EXPECT_EQ(judgement.criteria[2].measure.value, 3);
  EXPECT_EQ(outcome(judgement, "small"), Outcome::passes);
  EXPECT_EQ(outcome(judgement, "enough"), Outcome::open);
}

TEST(AdminTraining, TellsFailuresFromTraining) {
  const lab::Setup setup = setup_of("admin-trained", false);
  std::vector<Json> results;
  for (int method = 0; method < 5; ++method) {
    for (int run = 0; run < 6; ++run) {
      Json result = planted_result(method == 1 ? 3.0 : method == 2 ? 1.4 : 1.5);
      result["unigram_loss"] = 3.1;
      if (method == 1 && run == 3) result["status"] = "diverged";
      results.push_back(std::move(result));
    }
  }
  EXPECT_EQ(judged("admin-trained", setup, results).verdict, Verdict::holds);
  const lab::Setup quick = setup_of("admin-trained", true);
  EXPECT_TRUE(find_experiment("admin-trained").plan(quick).empty());
  EXPECT_EQ(judged("admin-trained", quick, {}).verdict, Verdict::undecided);
}

TEST(SublayerOrder, ComparesOrdersWithTheSeeds) {
  const lab::Setup setup = setup_of("sublayer-order", false);
  std::vector<Json> results;
  for (int run = 0; run < 5; ++run) results.push_back(planted_result(1.5 + 0.001 * run));
  const auto three = [&](double loss) {
    for (int run = -1; run <= 1; ++run) results.push_back(planted_result(loss + 0.003 * run));
  };
  three(1.53);  // attention first
  three(1.6);   // feed-forward first
  three(1.49);  // sandwiches
  three(1.5);
  for (int run = 0; run < 5; ++run) results.push_back(planted_result(1.51));
  for (int run = 0; run < 10; ++run) results.push_back(planted_result(1.55));
  const Judgement judgement = judged("sublayer-order", setup, results);
  EXPECT_EQ(judgement.verdict, Verdict::holds);
  EXPECT_NEAR(*judgement.criteria[0].measure.value, 0.028, 1e-9);  // 1.53 less 1.502
  EXPECT_NEAR(*judgement.criteria[1].measure.value, 0.07, 1e-9);
  EXPECT_NEAR(*judgement.criteria[2].measure.value, -0.012, 1e-9);
  EXPECT_NEAR(judgement.criteria[2].measure.interval->low, -0.015, 1e-9);  // its best seed alone
  for (std::size_t run = 8; run < 11; ++run) results[run] = planted_result(1.52);
  EXPECT_EQ(outcome(judged("sublayer-order", setup, results), "feed-forward-first"),
            Outcome::fails);
}

TEST(WideAgainstDeep, HasTenMechanismsWithTheSameHeads) {
  if (!default_corpus_is_installed()) GTEST_SKIP() << "the default corpus is not installed";
  const lab::Setup setup = setup_of("wide-against-deep", false);
  const std::vector<WideGrid> grids = wide_grids(setup);
  EXPECT_EQ(grids[1].mechanisms.size(), 10u);
  for (const WideGrid& grid : grids) {
    const int heads = grid.shapes.front().layers * grid.shapes.front().heads;
    for (const WideShape& shape : grid.shapes) EXPECT_EQ(shape.layers * shape.heads, heads);
    EXPECT_EQ(wide_specs(setup, grid).size(), grid.runs(3));  // every spec is one that trains
  }
}

}  // namespace
}  // namespace fathom::lab
