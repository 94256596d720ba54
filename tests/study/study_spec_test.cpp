#include "study/study_spec.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "model/transformer.h"
#include "scratch_folder.h"
#include "shape/parameters.h"
#include "study/planned_run.h"
#include "study/rounds.h"

namespace fathom::study {
namespace {

const std::string kSpec = R"(
[corpus]
path = "c.txt"
tokenizer = "bytes"
[grid]
kind = "ladder"
depths = [2, 4]
sizes = ["100K", 400000]
head_size = 16
[budget]
tokens = "64K"
[model]
context = 32
[train]
batch = 8
learning_rate = 0.003
)";

StudySpec spec(const std::vector<std::string>& settings = {}) {
  return read_study_spec_text(kSpec, "s.toml", settings);
}

std::string refused(const std::vector<std::string>& settings) {
  return error_of<ConfigError>([&] { spec(settings); });
}

TEST(Grid, LadderMatchesSizesByWholeHeads) {
  const Grid grid = spec().grid;
  // sqrt(100000 / 24) = 64.5 -> 64, sqrt(100000 / 48) = 45.6 -> 48, sqrt(400000 / 24) = 129.1.
  const std::vector<GridShape> expected{{2, 64, 4}, {2, 128, 8}, {4, 48, 3}, {4, 96, 6}};
  EXPECT_EQ(grid.shapes, expected);
  EXPECT_TRUE(grid.left_out.empty());
}

TEST(Grid, ARungThatCannotMatchIsLeftOutAndNamed) {
  const Grid grid = spec({"grid.head_size=64", "grid.tolerance=0.05"}).grid;
  // 2 x 64 is 98 K; 2 x 128 is 393 K; 4 layers would need 45.6 and 91.3.
  EXPECT_EQ(grid.shapes, (std::vector<GridShape>{{2, 64, 1}, {2, 128, 2}}));
  ASSERT_EQ(grid.left_out.size(), 2u);
  EXPECT_NE(grid.left_out[0].find("4 layers at 100K"), std::string::npos) << grid.left_out[0];
}

TEST(Grid, ListAndStar) {
  const Grid list =
      spec({"grid={kind='list', shapes=['3x64', '1x32', '3x64'], head_size=32}"}).grid;
  EXPECT_EQ(list.shapes, (std::vector<GridShape>{{1, 32, 1}, {3, 64, 2}}));
  const Grid star = spec({"grid={kind='star', centre='4x64', depths=[2, 8], widths=[32, 96], "
                          "head_size=32}"})
                        .grid;
  EXPECT_EQ(star.shapes,
            (std::vector<GridShape>{{2, 64, 2}, {4, 32, 1}, {4, 64, 2}, {4, 96, 3}, {8, 64, 2}}));
}

/// What is wrong with a study whose file has these lines: the grid's from line 5 on, the design's
/// at 15 and 16.
std::string refused_file(const std::string& grid, const std::string& decide,
                         const std::string& error) {
  const std::string text = "[corpus]\npath = \"c.txt\"\ntokenizer = \"bytes\"\n[grid]\n" + grid +
                           "\n[budget]\ntokens = \"64K\"\n[model]\ncontext = 32\n[train]\n"
                           "batch = 8\nlearning_rate = 0.003\n[design]\ndecide = " +
                           decide + "\nerror = " + error +
                           "\nruns = 100\ndepths = [1, 2, 4]\nsizes = [\"100K\", \"1M\"]\n";
  return error_of<ConfigError>([&] { read_study_spec_text(text, "s.toml"); });
}

TEST(StudySpec, AWrongItemIsNamedWithItsPlace) {
  const std::string good = "kind = \"list\"\nshapes = [\"2x64\", \"4x64\"]";
  EXPECT_EQ(refused_file(good, "[\"b\"]", "[0.1]"), "");
  EXPECT_EQ(refused_file("kind = \"list\"\nshapes = [\"2x64\", \"0x0\"]", "\"b\"", "0.1"),
            "s.toml:6:10: grid.shapes cannot be used: layers '0' must be greater than zero");
  EXPECT_EQ(refused_file("kind = \"list\"\nshapes = [\"2x60\"]\nhead_size = 16", "\"b\"", "0.1"),
            "s.toml:6:10: grid.shapes cannot be used: 2 layers x 60 wide is not a multiple of the "
            "head size 16");
  EXPECT_EQ(refused_file("kind = \"star\"\ncentre = \"6\"", "\"b\"", "0.1").substr(0, 35),
            "s.toml:6:10: grid.centre cannot be ");
  EXPECT_EQ(refused_file(good, "[\"best depth at x\"]", "[1]").substr(0, 48),
            "s.toml:15:10: design.decide 'x' is not a number;");
  EXPECT_EQ(refused_file(good, "\"b\"", "[0]"),
            "s.toml:16:9: design.error '0' must be greater than zero");
}

TEST(StudySpec, MistakesAreNamed) {
  EXPECT_NE(refused({"grid.kind=leader"}).find("Did you mean 'ladder'"), std::string::npos);
  EXPECT_NE(refused({"corpus.tokeniser=bpe"}).find("Did you mean 'tokenizer'"), std::string::npos);
  EXPECT_NE(refused({"train.steps=100"}).find("comes from the budget"), std::string::npos);
  EXPECT_NE(refused({"train.seed=3"}).find("[seeds]"), std::string::npos);
  EXPECT_NE(refused({"model.layers=3"}).find("comes from the grid"), std::string::npos);
  EXPECT_NE(refused({"model.norm=pree"}).find("pre"), std::string::npos);
  EXPECT_NE(refused({"train.lerning_rate=0.1"}).find("learning_rate"), std::string::npos);
  EXPECT_NE(refused({"budget.tokens_per_parameter=20"}).find("not both"), std::string::npos);
  EXPECT_NE(refused({"corpus.path=''"}).find("--corpus"), std::string::npos);
  EXPECT_NE(refused({"run.device=tpu"}).find("cpu, cuda"), std::string::npos);
  EXPECT_NE(refused({"nonsense.key=1"}).find("not a known key"), std::string::npos);
  EXPECT_NE(
      error_of<ConfigError>([] { read_study_spec_text("[grid\n", "b.toml"); }).find("b.toml:1"),
      std::string::npos);
}

TEST(StudySpec, SettingsSurviveInTheText) {
  const StudySpec changed = spec({"budget.tokens=[\"32K\", \"64K\"]", "seeds.all=[3, 4]"});
  const StudySpec again = read_study_spec_text(changed.text, "again.toml");
  EXPECT_EQ(again.budget.tokens, (std::vector<double>{32000, 64000}));
  EXPECT_EQ(again.seeds.all, (std::vector<std::uint64_t>{3, 4}));
  EXPECT_EQ(again.grid.shapes, changed.grid.shapes);
}

TEST(PlannedRun, ASeedNamedTwiceIsOneRun) {
  const StudySpec study = spec(
      {"seeds.all=[1, 2, 1]", "seeds.extra=[2, 7]", "seeds.extra_between=[\"300K\", \"500K\"]"});
  EXPECT_EQ(study.seeds.of_size(2e5), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(study.seeds.of_size(4e5), (std::vector<std::uint64_t>{1, 2, 7}));
  EXPECT_EQ(plan_runs(study, {}).size(), 4u * 2 + 2);
}

TEST(PlannedRun, BudgetsSeedsAndCounts) {
  const StudySpec study =
      spec({"seeds.all=[1, 2]", "seeds.extra=[7]", "seeds.extra_between=[\"300K\", \"500K\"]"});
  const TokenFacts facts{hash_bytes("tokens"), 257};
  const auto runs = plan_runs(study, facts);
  EXPECT_EQ(runs.size(), 4u * 2 + 2);  // both shapes of 400 K get the third seed
  std::set<std::string> ids;
  for (const PlannedRun& run : runs) {
    ids.insert(run.id);
    EXPECT_EQ(run.id.size(), 16u);
    EXPECT_EQ(run.spec.model.vocab, 257);
    EXPECT_EQ(run.spec.schedule.steps, 250);  // 64000 / (8 * 32)
    EXPECT_EQ(run.tokens, 64000);
  }
  EXPECT_EQ(ids.size(), runs.size());
  for (std::size_t i = 1; i < runs.size(); ++i) EXPECT_GE(runs[i - 1].flops, runs[i].flops);
  // Another corpus, other ids.
  EXPECT_NE(plan_runs(study, TokenFacts{hash_bytes("other"), 257})[0].id, runs[0].id);
  EXPECT_EQ(plan_runs(study, {})[0].id, "");
}

TEST(PlannedRun, ABudgetBeyondAllCountsIsRefused) {
  EXPECT_NE(error_of<ConfigError>([] {
              plan_runs(spec({"budget.tokens=1e23"}), {});
            }).find("are possible"),
            std::string::npos);
}

TEST(PlannedRun, ASeedThatASpecRefusesIsRefusedInEveryPlace) {
  EXPECT_THROW(plan_runs(spec({"seeds.all=[1, 4000000000000]"}), {}), ConfigError);
}

/// The text with ten thousand seeds is parsed for every shape, not for every run.
TEST(PlannedRun, ManySeedsAreManyRuns) {
  std::string seeds = "1";
  for (int seed = 2; seed <= 10'000; ++seed) seeds += ", " + std::to_string(seed);
  const auto runs = plan_runs(spec({"seeds.all=[" + seeds + "]"}), {});
  EXPECT_EQ(runs.size(), 40'000u);
  EXPECT_NE(runs[0].spec.seed, runs[1].spec.seed);
}

TEST(PlannedRun, TokensPerParameter) {
  StudySpec study = spec();
  study.budget = {{}, 20, 0};
  for (const PlannedRun& run : plan_runs(study, {})) {
    EXPECT_GE(run.tokens, 20 * run.parameters);
    EXPECT_LT(run.tokens, 20 * run.parameters + 8 * 32);
  }
}

TEST(PlannedRun, CountsAreTheModelsOwn) {
  for (const std::vector<std::string>& settings : std::vector<std::vector<std::string>>{
           {},
           {"model.biases=false", "model.norm_kind=rms"},
           {"model.activation=swiglu", "model.positions=rotary", "model.tied=false"},
           {"model.norm=post"},
           {"model.norm=none"}}) {
    for (const PlannedRun& run : plan_runs(spec(settings), TokenFacts{{}, 257})) {
      const auto model = model::build_transformer(run.spec.model, {});
      EXPECT_EQ(run.total_parameters, model->parameter_count())
          << (settings.empty() ? "" : settings[0]);
    }
  }
}

TEST(PlannedRun, LongerBudgetsOfAWsdScheduleShareTheShortersStem) {
  const TokenFacts facts{hash_bytes("tokens"), 257};
  const std::vector<std::string> two{"budget.tokens=[\"64K\", \"128K\"]", "train.warmup=10",
                                     "train.schedule=wsd", "train.decay=0.2"};
  int linked = 0;
  for (const PlannedRun& run : plan_runs(spec(two), facts)) {
    if (run.tokens == 64000) {
      // Factor 1 holds while (step - 10) / 240 <= 0.8, that is up to step 202.
      EXPECT_EQ(run.stem_step, 203);
    } else {
      EXPECT_FALSE(run.stem_from.empty());
      EXPECT_EQ(run.shared_steps, 203);
      ++linked;
    }
  }
  EXPECT_EQ(linked, 4);
  for (const PlannedRun& run :
       plan_runs(spec({"budget.tokens=[\"64K\", \"128K\"]", "train.warmup=10"}), facts)) {
    EXPECT_EQ(run.stem_step, 0);  // cosine: every step depends on the length
  }
}

TEST(StudySpec, EveryKeyIsInTheGuide) {
  const std::string guide = file_bytes(FATHOM_SOURCE_DIR "/docs/studies.md");
  for (const TableDescription& table : describe_study_spec()) {
    for (const KeyDescription& key : table.keys) {
      const std::string name = table.name.empty() ? key.key : table.name + "." + key.key;
      EXPECT_NE(guide.find("`" + name), std::string::npos) << name;
    }
  }
}

TEST(Presets, AreValidStudies) {
  for (const std::string& name : preset_names()) {
    const StudySpec preset = read_study_spec_text(preset_text(name), name, {"corpus.path=sotu"});
    const std::size_t runs = preset.design
                                 ? first_round(preset, design_spec(preset, {}, nullptr)).runs.size()
                                 : plan_runs(preset, {}).size();
    EXPECT_GE(runs, 10u) << name;
  }
  EXPECT_EQ(read_study_spec_text(preset_text("quick"), "q").corpus.path, "sotu");
  EXPECT_THROW(preset_text("quik"), ConfigError);
}

}  // namespace
}  // namespace fathom::study
