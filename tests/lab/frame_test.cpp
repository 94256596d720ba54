// The frame: claims as data, options, verdicts, records, resumption.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/error.h"
#include "lab/frame/claim.h"
#include "lab/frame/experiment.h"
#include "lab/frame/options.h"
#include "lab/frame/records.h"
#include "lab/frame/result_json.h"
#include "lab/frame/runner.h"
#include "lab/frame/statistics.h"
#include "lab/frame/verdict.h"
#include "scratch_folder.h"

namespace fathom::lab {
namespace {

Criterion between(double low, double high) {
  Criterion criterion;
  criterion.id = "c";
  criterion.low = low;
  criterion.high = high;
  return criterion;
}

TEST(Verdict, ANumberOrAWholeIntervalMustLieInTheRange) {
  const Criterion range = between(1, 2);
  EXPECT_EQ(judge_measure(range, {"c", 1.0}), Outcome::passes);
  EXPECT_EQ(judge_measure(range, {"c", 2.5}), Outcome::fails);
  EXPECT_EQ(judge_measure(range, {"c", {}}), Outcome::open);
  EXPECT_EQ(judge_measure(range, {"c", std::nan("")}), Outcome::open);
  EXPECT_EQ(judge_measure(range, {"c", 1.5, Interval{1.2, 1.8}}), Outcome::passes);
  EXPECT_EQ(judge_measure(range, {"c", 1.9, Interval{1.7, 2.1}}), Outcome::open);
  EXPECT_EQ(judge_measure(range, {"c", 3.0, Interval{2.5, 3.5}}), Outcome::fails);
}

TEST(Verdict, OfAClaimFollowsFromItsCriteria) {
  using enum Outcome;
  EXPECT_EQ(verdict_of({passes, passes}), Verdict::holds);
  EXPECT_EQ(verdict_of({fails, fails}), Verdict::fails);
  EXPECT_EQ(verdict_of({passes, fails, open}), Verdict::holds_in_part);
  EXPECT_EQ(verdict_of({passes, open}), Verdict::undecided);
  EXPECT_EQ(verdict_of({fails, open}), Verdict::undecided);
  EXPECT_EQ(verdict_of({}), Verdict::undecided);
}

TEST(Verdict, BoundaryComesFromTheCriteriaThatFail) {
  Claim claim;
  claim.criteria = {between(0, 1), between(0, 1)};
  claim.criteria[0].id = "a";
  claim.criteria[1].boundary = "not there";
  const Judgement judgement = judge(claim, {{"a", 0.5}, {"c", 7.0}}, false);
  EXPECT_EQ(judgement.verdict, Verdict::holds_in_part);
  EXPECT_EQ(judgement.boundary, "not there");
  EXPECT_EQ(judge(claim, {{"a", 0.5}}, false).verdict, Verdict::undecided);
  EXPECT_EQ(judge(claim, {{"a", 0.5}}, true).verdict, Verdict::holds);
  EXPECT_THROW(judge(claim, {{"other", 0.5}}, true), InternalError);
}

TEST(Criterion, RangesReadAsWords) {
  EXPECT_EQ(between(2.7, 3.6).range(), "2.7 to 3.6");
  EXPECT_EQ(between(0, 0).range(), "exactly 0");
  EXPECT_EQ(between(-std::numeric_limits<double>::infinity(), 1e-12).range(), "at most 1e-12");
  EXPECT_EQ(between(0.95, std::numeric_limits<double>::infinity()).range(), "at least 0.95");
}

TEST(Claims, EveryOneHasAnExperimentWithItsCriteriaAndAPage) {
  std::set<std::string> ids;
  for (const Claim& claim : claims()) {
    EXPECT_TRUE(ids.insert(claim.id).second) << claim.id;
    EXPECT_EQ(find_experiment(claim.id).claim, claim.id);
    EXPECT_FALSE(claim.statement.empty());
    if (claim.finding.verdict == Verdict::undecided) {
      EXPECT_FALSE(claim.undecided.empty()) << claim.id << " must say what deciding it would cost";
    }
  }
  EXPECT_EQ(ids.size(), experiments().size());
  for (std::size_t i = 0; i < experiments().size(); ++i) {
    EXPECT_EQ(experiments()[i].claim, claims()[i].id) << "the two lists have one order";
  }
}

TEST(Claims, TheQuestionInTheHelpIsOneThatTheExperimentTakes) {
  for (const Claim& claim : claims()) {
    if (claim.ask.empty()) continue;
    std::vector<GivenOption> given;
    std::istringstream words(claim.ask);
    for (std::string name, value; words >> name >> value;) {
      ASSERT_TRUE(name.starts_with("--")) << claim.id;
      std::erase(value, '\'');
      given.push_back({name.substr(2), value});
    }
    lab::Setup setup = resolve_setup(find_experiment(claim.id), given, false);
    setup.threads = 2;
    EXPECT_TRUE(setup.own) << claim.id;
    EXPECT_FALSE(find_experiment(claim.id).plan(setup).empty()) << claim.id;
  }
}

TEST(Claims, ATypoInTheTableOrInAnIdIsNamed) {
  EXPECT_THROW(read_claims("[a]\ntitel = 'x'\n", "t.toml"), ConfigError);
  try {
    find_claim("rank-colapse");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("rank-collapse"), std::string::npos);
  }
}

Experiment counting_experiment(std::atomic<int>& computed) {
  Experiment experiment;
  experiment.claim = "none";
  experiment.options = {integer_option("size", 3, "N", "", 1, 10), flag_option("wide", ""),
                        text_option("mask", "none", "", "", {"none", "causal"}),
                        number_option("scale", 1, "S", "", 0, 5), seeds_option(8, 2)};
  experiment.plan = [&computed](const Setup& setup) {
    std::vector<Part> parts;
    for (std::size_t i = 0; i < setup.size("seeds"); ++i) {
      parts.push_back({"part " + std::to_string(i), 1, [&computed, i](const Ticker&) {
                         ++computed;
                         return Json(i * i);
                       }});
    }
    return parts;
  };
  return experiment;
}

TEST(Setup, DefaultsQuickAndGivenOptions) {
  std::atomic<int> computed = 0;
  const Experiment experiment = counting_experiment(computed);
  EXPECT_EQ(resolve_setup(experiment, {}, false).size("seeds"), 8u);
  EXPECT_EQ(resolve_setup(experiment, {}, true).size("seeds"), 2u);
  EXPECT_FALSE(resolve_setup(experiment, {{"seeds", "5"}}, true).own);
  const lab::Setup own = resolve_setup(experiment, {{"size", "7"}, {"wide", "true"}}, true);
  EXPECT_TRUE(own.own);
  EXPECT_EQ(own.size("size"), 7u);
  EXPECT_TRUE(own.flag("wide"));
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"size", "0"},
                                                        {"size", "2.5"},
                                                        {"size", "99999999999999999999"},
                                                        {"size", ""},
                                                        {"scale", "nan"},
                                                        {"scale", "6"},
                                                        {"mask", "casual"},
                                                        {"nothing", "1"}}) {
    EXPECT_THROW(resolve_setup(experiment, {{name, text}}, false), ConfigError) << name << text;
  }
}

TEST(Setup, CostBeyondTheLimitsIsRefusedWithTheEstimate) {
  lab::Setup setup;
  setup.threads = 2;
  EXPECT_NO_THROW(check_cost(setup, "x", 1000, 1e6));
  EXPECT_THROW(check_cost(setup, "x", 1000, 1e6, false), ConfigError);
  EXPECT_THROW(check_cost(setup, "x", 1, 1e18), ConfigError);
  try {
    check_cost(setup, "this", 7200, 0);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("this would take about 60.0 min"), std::string::npos)
        << error.what();
  }
}

Setup quick_setup(const std::string& id) {
  return resolve_setup(find_experiment(id), {{"seeds", "3"}}, true);
}

TEST(Runner, ResultsDoNotDependOnThreadsOrOnResumption) {
  const ScratchFolder folder;
  const Claim& claim = find_claim("masked-collapse");
  const auto values = [](const LabResult& result) { return result.conclusion.data.dump(); };
  const LabResult alone = run_claim(claim, quick_setup(claim.id), 1);
  {
    // Stops in the middle: some parts are kept.
    LabRecords records(folder.path() / "lab");
    std::atomic<int> asked = 0;
    RunEvents events;
    // A part of three seeds asks before each of twelve layers, by both methods, and at its end.
    events.stop = [&] { return ++asked > 3 * 24 + 1 + 20; };
    EXPECT_THROW(run_claim(claim, quick_setup(claim.id), 1, &records, events), StoppedError);
  }
  LabRecords records(folder.path() / "lab");
  const LabResult resumed = run_claim(claim, quick_setup(claim.id), 3, &records);
  EXPECT_GT(resumed.resumed, 0u);
  EXPECT_LT(resumed.resumed, resumed.parts);
  EXPECT_EQ(values(resumed), values(alone));
  const LabResult known = run_claim(claim, quick_setup(claim.id), 2, &records);
  EXPECT_EQ(known.resumed, known.parts);
  EXPECT_EQ(known.dated, known.parts);
  EXPECT_GT(known.busy.seconds, 0);
  EXPECT_LE(known.busy.seconds, known.part_seconds + 1);  // less than one part's clock error
  EXPECT_EQ(values(known), values(alone));
}

TEST(Runner, EqualPartsAreComputedOnce) {
  std::atomic<int> computed = 0;
  const auto part = [&](const std::string& key, int value) {
    return Part{key, 1, [&computed, value](const Ticker&) {
                  ++computed;
                  return Json(value);
                }};
  };
  const std::vector<Part> parts{part("a", 1), part("b", 2), part("a", 1)};
  double share = 0;
  RunEvents events;
  events.progress = [&](double each) { share = each; };
  EXPECT_EQ(run_parts(parts, 3, nullptr, events).results, (std::vector<Json>{1, 2, 1}));
  EXPECT_EQ(computed, 2);
  EXPECT_LE(share, 1.0);
}

TEST(Runner, WallTimeIsThatInWhichAnyPartRan) {
  // Two together, one that overlaps them, a pause, and one that begins as another ends.
  const std::vector<Interval> parts{{30, 35}, {0, 10}, {0, 4}, {8, 12}, {35, 36}};
  const BusyTime busy = busy_time(parts);
  EXPECT_DOUBLE_EQ(busy.seconds, 12 + 6);
  EXPECT_EQ(busy.at_once, 2u);
  EXPECT_EQ(busy_time({}).at_once, 0u);
  EXPECT_EQ(busy_time({}).seconds, 0);
}

TEST(Records, OneProcessAtATimeAndDamageIsNamed) {
  const ScratchFolder folder;
  {
    LabRecords records(folder.path());
    EXPECT_THROW(LabRecords{folder.path()}, ConfigError);
    records.add("a", Json{{"x", 1}}, 0.5);
  }
  {
    std::ofstream cut(folder.path() / "parts.jsonl", std::ios::app);
    cut << "{\"key\": \"b";  // a crash in the middle of a line
  }
  {
    LabRecords records(folder.path());
    ASSERT_NE(records.find("a"), nullptr);
    EXPECT_EQ(records.find("a")->result["x"], 1);
    EXPECT_EQ(records.find("b"), nullptr);
    records.add("b", Json(2), 0.1);
  }
  {
    const LabRecords records(folder.path());
    EXPECT_EQ(records.find("b")->result, 2);
    EXPECT_EQ(records.find("b")->seconds, 0.1);
    EXPECT_GE(records.find("b")->ended, records.find("a")->ended);
  }
  {
    std::string parts = file_bytes(folder / "parts.jsonl");
    parts.replace(parts.find("{\"x\":1}"), 7, "{\"x\":3}");
    const std::filesystem::path changed = folder.write("changed/parts.jsonl", parts);
    EXPECT_EQ(error_of<DataError>([&] {
                LabRecords records(changed.parent_path());
              }).find(changed.string() + ":1: damaged"),
              0u);
  }
  {
    std::ofstream other(folder.path() / "parts.jsonl", std::ios::app);
    other << "something else\n";
  }
  EXPECT_THROW(LabRecords{folder.path()}, DataError);
}

TEST(Records, APartOfAnotherFormIsAnErrorOfItsFile) {
  const ScratchFolder folder;
  const auto setup = quick_setup("path-lengths");
  {
    LabRecords records(folder / "whole");
    run_claim(find_claim("path-lengths"), setup, 2, &records);
  }
  std::string parts = file_bytes(folder / "whole/parts.jsonl");
  // As edited by hand: the result is no longer what the experiment writes, and no checksum left.
  const std::size_t result = parts.find("\"result\":"), end = parts.find(",\"seconds\"", result);
  parts.replace(result, end - result, "\"result\":{\"odd\":1}");
  const std::size_t checksum = parts.find(",\"checksum\"");
  parts.erase(checksum, parts.find('}', checksum) - checksum);
  const std::filesystem::path changed = folder.write("changed/parts.jsonl", parts);
  const std::string problem = error_of<DataError>([&] {
    LabRecords records(changed.parent_path());
    run_claim(find_claim("path-lengths"), setup, 2, &records);
  });
  EXPECT_EQ(problem.find(changed.string() + ": a part of path-lengths is damaged (the key "), 0u)
      << problem;
  EXPECT_EQ(problem.find("json.exception"), std::string::npos);
}

TEST(Records, ResultsAreReadBackInTheOrderOfTheClaims) {
  const ScratchFolder folder;
  EXPECT_THROW(read_results(folder.path()), DataError);
  LabRecords records(folder.path());
  run_claim(find_claim("path-lengths"),
            resolve_setup(find_experiment("path-lengths"), {{"layers", "2"}, {"seeds", "1"}}, true),
            1, &records);
  run_claim(find_claim("masked-collapse"), quick_setup("masked-collapse"), 1, &records);
  const std::vector<Json> documents = read_results(folder.path());
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0]["id"], "masked-collapse");
  EXPECT_EQ(documents[1]["id"], "path-lengths");
  EXPECT_TRUE(documents[1]["own_setup"]);
  EXPECT_FALSE(documents[0].contains("checksum"));
  const auto file = folder / "results/masked-collapse.json";
  const std::string whole = file_bytes(file);
  std::string changed = whole;
  changed.replace(changed.find("\"verdict\": \""), 14, "\"verdict\": \"x");
  std::ofstream(file) << changed;
  EXPECT_NE(error_of<DataError>([&] { read_results(folder.path()); }).find("damaged"),
            std::string::npos);
  std::ofstream(file) << whole;
  std::ofstream(folder.path() / "results" / "x.json") << "[]";
  EXPECT_THROW(read_results(folder.path()), DataError);
}

TEST(Statistics, QuartilesLinesAndIntervals) {
  const Quartiles q = quartiles({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(q.low, 1.75);
  EXPECT_DOUBLE_EQ(q.median, 2.5);
  EXPECT_DOUBLE_EQ(q.high, 3.25);
  const std::vector<double> x{1, 2, 3, 4};
  const std::vector<double> y{2, 4, 5, 9};
  const LineFit line = fit_line(x, y);  // sxx = 5, sxy = 11, syy = 26
  EXPECT_DOUBLE_EQ(line.slope, 2.2);
  EXPECT_DOUBLE_EQ(line.intercept, -0.5);
  EXPECT_DOUBLE_EQ(line.r_squared, 121.0 / 130);
  // The bootstrap of a mean of 0/1 values: half its units are 1.
  const Interval interval = bootstrap_interval(100, [](std::span<const std::size_t> units) {
    double ones = 0;
    for (const std::size_t unit : units) ones += unit % 2 == 0 ? 1 : 0;
    return ones / static_cast<double>(units.size());
  });
  EXPECT_NEAR(interval.low, 0.5 - 1.96 * 0.05, 0.015);
  EXPECT_NEAR(interval.high, 0.5 + 1.96 * 0.05, 0.015);
}

}  // namespace
}  // namespace fathom::lab
