// Adaptive studies with simulated runs: records follow a planted surface, nothing is trained.
#include "study/rounds.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "fits/planted_world.h"
#include "study/design_forecast.h"
#include "study/design_text.h"
#include "study/study_rows.h"
#include "study/tiny_study.h"

namespace fathom::study {
namespace {

std::string design_spec_text(const std::filesystem::path& corpus) {
  return "title = \"Design\"\n[corpus]\npath = \"" + corpus.string() +
         "\"\ntokenizer = \"bytes\"\nvalid = 0.2\ntest = 0.2\neval_tokens = 512\n"
         "[design]\ndecide = [\"6 over 3\"]\nerror = [0.12]\nflops = 4e17\n"
         "depths = [2, 3, 4, 6, 8, 12, 16, 24]\nsizes = [\"200K\", \"20M\"]\n"
         "[budget]\ntokens = \"100M\"\n"
         "[model]\ncontext = 32\n[train]\nbatch = 1000\nlearning_rate = 0.003\n";
}

struct PlantedDesign {
  ScratchFolder folder;
  std::filesystem::path corpus = folder.write("corpus.txt", tiny_corpus());
  fits::PlantedWorld world;

  StudySpec spec(const std::vector<std::string>& settings = {}) const {
    return read_study_spec_text(design_spec_text(corpus), "design.toml", settings);
  }
  Study begin(const std::string& name, const std::vector<std::string>& settings = {}) const {
    std::filesystem::create_directories(folder / name);
    return begin_study(folder / name, spec(settings));
  }

  /// Writes the record that a worker would: its loss is the planted one.
  void finish(const Study& study, const PlannedRun& run, bool diverged = false) const {
    const model::ModelSpec& m = run.spec.model;
    const fits::RunPoint point =
        world.run(m.layers, m.width, run.spec.seed, static_cast<double>(run.tokens), 1);
    train::RunRecord record;
    record.id = run.id;
    record.layers = m.layers;
    record.width = m.width;
    record.heads = m.heads;
    record.seed = run.spec.seed;
    record.non_embedding = run.parameters;
    record.parameters = run.total_parameters;
    record.tokens = run.tokens;
    record.steps = record.timed_steps = run.spec.schedule.steps;
    record.flops = run.flops;
    record.seconds = run.flops / 1e14;
    record.final_loss = record.best_loss = point.loss;
    record.final_bits_per_byte = point.loss;
    record.status = diverged ? train::RunStatus::diverged : train::RunStatus::finished;
    if (diverged) record.reason = "planted";
    std::filesystem::create_directories(study.folder.run(run.id).path());
    write_run_record(record, study.folder.run(run.id).record());
  }

  /// An executor that makes at most `limit` runs before it is stopped.
  ExecuteRuns executor(std::size_t limit = 1u << 30) const {
    return [this, limit, made = std::size_t{0}](const Study& study) mutable {
      ExecutorResult result;
      for (const PlannedRun& run : study.runs) {
        if (!std::filesystem::exists(study.folder.run(run.id).record())) {
          if (made == limit) {
            result.stopped = true;
            return result;
          }
          ++made;
          finish(study, run);
        }
        ++result.done;
      }
      return result;
    };
  }
};

const auto kSilent = [](const std::string&) {};

TEST(Rounds, GoOnUntilTheGoalIsDecided) {
  const PlantedDesign planted;
  Study study = planted.begin("study");
  EXPECT_TRUE(study.runs.empty());
  std::size_t lines = 0;
  const RoundsResult result =
      run_rounds(study, 1, planted.executor(), [&](const std::string&) { ++lines; });
  ASSERT_TRUE(result.end);
  EXPECT_EQ(result.end->step.stage, fits::DesignStage::decided);
  EXPECT_GE(result.end->rounds, 2u);
  EXPECT_EQ(lines, 2 * result.end->rounds);
  EXPECT_LE(result.end->step.spent, 4e17);
  const fits::GoalState& goal = result.end->step.goals.front();
  EXPECT_LE(goal.error, 0.12);
  const double truth = std::exp(planted.world.true_crossing(3, 6, std::log(2e5), std::log(2e7), 1));
  EXPECT_LE(*goal.low, 1.02 * truth);  // N counts norms too here
  EXPECT_GE(*goal.high, truth);
  // Everybody who looks at the folder sees the runs of all rounds.
  EXPECT_EQ(open_study(study.folder.path()).runs.size(), study.runs.size());
  EXPECT_EQ(points_of(collect_rows(study.folder.path())).size(), study.runs.size());
}

// Stopped after every few runs, the study makes the choices of one that was not.
TEST(Rounds, StoppedAnywhereTheChoicesAreTheSame) {
  const PlantedDesign planted;
  Study whole = planted.begin("whole");
  ASSERT_TRUE(run_rounds(whole, 1, planted.executor(), kSilent).end);
  std::optional<DesignProgress> end;
  int calls = 0;
  for (; !end && calls < 100; ++calls) {
    Study study = planted.begin("stopped");
    end = run_rounds(study, 1, planted.executor(5), kSilent).end;
    // Killed between its records and the next choice: nothing but folders is left anyway.
  }
  ASSERT_TRUE(end);
  EXPECT_GT(calls, 4);
  EXPECT_EQ(read_text_file(whole.folder.design()),
            read_text_file(StudyFolder(planted.folder / "stopped").design()));
}

TEST(Rounds, AGridIsTheFirstRound) {
  const PlantedDesign planted;
  const std::vector<std::string> grid{"grid.kind=\"ladder\"", "grid.depths=[2, 4, 8, 16]",
                                      "grid.sizes=[\"300K\", \"900K\", \"2.7M\", \"8M\"]",
                                      "grid.head_size=16"};
  Study study = planted.begin("study", grid);
  const std::size_t first = study.runs.size();
  EXPECT_GE(first, 14u);
  ASSERT_TRUE(run_rounds(study, 1, planted.executor(), kSilent).end);
  const auto log = read_design_log(study.folder);
  EXPECT_EQ(log->rounds.front().runs, grid_trajectories(study.spec));
  EXPECT_GT(study.runs.size(), first);
}

TEST(Rounds, StatusTellsWhatIsMissingAndWhatItCosts) {
  const PlantedDesign planted;
  Study study = planted.begin("study");
  run_rounds(study, 1, planted.executor(20), kSilent);
  const DesignProgress progress = look_at_design(study, collect_rows(study));
  const auto json = design_json(progress, *study.spec.design);
  EXPECT_EQ(json.at("goal"), "6 over 3");
  EXPECT_EQ(json.at("target"), 0.12);
  EXPECT_FALSE(json.at("decided").get<bool>());
  EXPECT_GT(json.at("next_cost_seconds").get<double>(), 0);
  EXPECT_EQ(progress.open_runs, study.runs.size() - 20);
  // By hand: the open runs at the records' 1e14 FLOP/s.
  double flops = 0;
  for (const PlannedRun& run : study.runs) {
    if (!std::filesystem::exists(study.folder.run(run.id).record())) flops += run.flops;
  }
  EXPECT_NEAR(progress.next_cost, flops, 1e-6 * flops);
  const int jobs = 1;
  EXPECT_GT(progress.next_seconds, 0.5 * flops / 1e14 / 64);
  EXPECT_LT(progress.next_seconds, 1.5 * flops / 1e14 / jobs);
}

// A shape that diverged is neither asked for again nor forgotten in the bill.
TEST(Rounds, DivergedShapesAreLeftOut) {
  const PlantedDesign planted;
  Study study = planted.begin("study");
  std::optional<GridShape> lost;
  const auto execute = [&](const Study& now) {
    ExecutorResult result;
    for (const PlannedRun& run : now.runs) {
      if (!lost) {
        lost = GridShape{run.spec.model.layers, run.spec.model.width, run.spec.model.heads};
        planted.finish(now, run, true);
      }
      if (!std::filesystem::exists(now.folder.run(run.id).record())) planted.finish(now, run);
      ++result.done;
    }
    return result;
  };
  const RoundsResult result = run_rounds(study, 1, execute, kSilent);
  ASSERT_TRUE(result.end);
  int asked = 0;
  double cost = 0;
  for (const PlannedRun& run : study.runs) {
    asked += run.spec.model.layers == lost->layers && run.spec.model.width == lost->width;
    cost += run.flops;
  }
  EXPECT_EQ(asked, 1);
  EXPECT_NEAR(result.end->step.spent, cost, 1e-6 * cost);
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Rounds, ContradictionsAreOneClearLine) {
  const PlantedDesign planted;
  const auto said = [&](const std::vector<std::string>& settings) {
    return refusal([&] { check_design(planted.spec(settings)); });
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos && text.find('\n') == std::string::npos;
  };
  EXPECT_EQ(said({}), "");
  EXPECT_TRUE(contains(said({"design.flops=0"}), "buys no run"));
  EXPECT_TRUE(contains(said({"design.flops=1e10"}), "buys no run"));
  EXPECT_TRUE(contains(said({"design.runs=20"}), "keep one"));
  EXPECT_TRUE(contains(said({"design.sizes=[\"2M\", \"1M\"]"}), "contradict"));
  EXPECT_TRUE(contains(said({"design.decide=[\"48 over 24\"]"}), "does not allow"));
  EXPECT_TRUE(contains(said({"design.decide=[\"3 over 6\"]"}), "name the deeper network first"));
  EXPECT_TRUE(contains(said({"design.decide=[\"best depth at 1B\"]"}), "outside"));
  EXPECT_TRUE(contains(said({"design.decide=[\"truth\"]"}), "is not a goal"));
  EXPECT_TRUE(contains(said({"design.error=[0.1, 0.2]"}), "one number for each"));
  EXPECT_TRUE(contains(said({"design.min_width=4000"}), "no"));
  EXPECT_TRUE(contains(said({"grid.kind=\"list\"", "grid.shapes=[\"24x2048\"]"}), "first round"));
}

TEST(Rounds, KnowTheErrorWantedWhereNoneIsNamed) {
  const PlantedDesign planted;
  std::string text = design_spec_text(planted.corpus);
  const std::string given = "decide = [\"6 over 3\"]\nerror = [0.12]\n";
  text.replace(text.find(given), given.size(),
               "decide = [\"a\", \"b\", \"6 over 3\", \"best depth at 1M\", \"form\"]\n");
  const StudySpec spec = read_study_spec_text(text, "design.toml", {});
  std::vector<double> wanted;
  for (const fits::DesignGoal& goal : spec.design->goals) wanted.push_back(goal.target);
  EXPECT_EQ(wanted, (std::vector<double>{0.3, 0.03, 0.2, 0.16, 20}));
}

TEST(Rounds, AnotherDesignUnderAnOldStudyIsRefused) {
  const PlantedDesign planted;
  Study study = planted.begin("study");
  run_rounds(study, 1, planted.executor(3), kSilent);
  const auto said = [&](const std::vector<std::string>& settings) {
    return refusal([&] { planted.begin("study", settings); });
  };
  EXPECT_EQ(said({}), "");
  EXPECT_NE(said({"design.error=[0.2]"}).find("error = [0.2]; it was: error = [0.12]"),
            std::string::npos);
  EXPECT_NE(said({"train.learning_rate=0.01"}).find("has changed since the design was started"),
            std::string::npos);
  // The spec on disk is still the old one, and a larger budget is welcome.
  EXPECT_EQ(open_study(study.folder.path()).spec.design->error.front(), 0.12);
  EXPECT_EQ(said({"design.flops=8e17"}), "");
}

TEST(Rounds, APlanForetellsTheWhole) {
  const PlantedDesign planted;
  const StudySpec spec = planted.spec();
  const DesignForecast forecast = foretell_design(spec, design_spec(spec, std::nullopt, nullptr));
  EXPECT_GE(forecast.rounds.size(), 2u);
  EXPECT_EQ(forecast.end.stage, fits::DesignStage::decided);
  double cost = 0;
  for (const DesignRound& round : forecast.rounds) cost += round.cost;
  EXPECT_NEAR(forecast.end.spent, cost, 1e-6 * cost);
}

TEST(Rounds, APlanOfABudgetWithoutEndComesToOne) {
  const PlantedDesign planted;
  const StudySpec spec = planted.spec({"design.flops=1e30", "design.error=[1e-9]"});
  const DesignForecast forecast = foretell_design(spec, design_spec(spec, std::nullopt, nullptr));
  std::size_t runs = 0;
  for (const DesignRound& round : forecast.rounds) runs += round.runs.size();
  EXPECT_GT(runs, 100u);
  EXPECT_LT(runs, 6000u);
}

}  // namespace
}  // namespace fathom::study
