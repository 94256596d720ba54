// Runs with proximal steps: zeros are exact, a resume repeats them, and the best weights are kept.
#include <gtest/gtest.h>

#include "model/units.h"
#include "train/run_fixture.h"
#include "train/run_folder.h"
#include "train/weights.h"

namespace fathom::train {
namespace {

const std::vector<std::string> kStrong{"train.prox=l21", "train.prox_rows=6", "train.prox_heads=40",
                                       "train.steps=24", "model.dropout=0.0"};

class ProxRun : public RunTest {
 protected:
  /// Idle neurons and heads of a run's checkpoint.
  std::pair<std::int64_t, std::int64_t> idle_units(const std::string& name) const {
    const Weights weights = load_weights(folder_ / name);
    std::pair<std::int64_t, std::int64_t> idle{0, 0};
    for (const model::UnitCount& count : compact(weights.spec, weights.parameters).counts) {
      (count.kind == model::UnitKind::neuron ? idle.first : idle.second) += count.idle;
    }
    return idle;
  }

  std::string refusal(const std::vector<std::string>& settings) const {
    try {
      spec(settings);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(ProxRun, TakesOutWhatItIsToldTo) {
  run(spec({"train.steps=24"}), "plain");
  EXPECT_EQ(idle_units("plain"), (std::pair<std::int64_t, std::int64_t>{0, 0}));
  run(spec(kStrong), "both");
  EXPECT_GT(idle_units("both").first, 0);
  EXPECT_GT(idle_units("both").second, 0);
  auto rows = kStrong;
  rows[2] = "train.prox_heads=0";
  run(spec(rows), "rows");
  EXPECT_GT(idle_units("rows").first, 0);
  EXPECT_EQ(idle_units("rows").second, 0);
  auto level = kStrong;
  level[0] = "train.prox=linf1";
  level[1] = "train.prox_rows=40";
  level[2] = "train.prox_heads=2000";
  run(spec(level), "level");
  EXPECT_GT(idle_units("level").first, 0);
  EXPECT_GT(idle_units("level").second, 0);
}

TEST_F(ProxRun, GoesOnBitForBit) {
  run(spec(kStrong), "whole");
  int steps = 0;
  const auto stop = [&] { return ++steps == 7; };
  EXPECT_EQ(run(spec(kStrong), "stopped", false, {}, stop).status, RunStatus::interrupted);
  run(spec(kStrong), "stopped", true);
  expect_equal_runs("whole", "stopped");
}

TEST_F(ProxRun, IsPartOfTheRunsId) {
  EXPECT_NE(run_id(spec(kStrong), {}), run_id(spec({"train.steps=24", "model.dropout=0.0"}), {}));
  EXPECT_EQ(to_toml(spec()).find("prox"), std::string::npos);
  EXPECT_EQ(to_toml(spec()).find("keep_best"), std::string::npos);
  EXPECT_EQ(to_toml(spec()).find("layer_"), std::string::npos);
}

TEST_F(ProxRun, WrongKeysGetOneLine) {
  EXPECT_NE(refusal({"train.prox_rows=1"}).find("prox is missing for prox_rows or prox_heads"),
            std::string::npos);
  EXPECT_NE(refusal({"train.prox=l21"}).find("prox needs a strength, prox_rows or prox_heads"),
            std::string::npos);
  EXPECT_NE(refusal({"train.prox=l1", "train.prox_rows=1"}).find("none, l21"), std::string::npos);
  EXPECT_NE(refusal({"train.prox=l21", "train.prox_rows=-1"}).find("must lie between 0"),
            std::string::npos);
  EXPECT_NE(refusal({"train.prox=l21", "train.prox_rows=1", "model.feed_forward=false"})
                .find("the model has no feed-forward"),
            std::string::npos);
  EXPECT_NE(refusal({"train.prox=l21", "train.prox_heads=1", "model.attention_norm=true"})
                .find("prox_heads needs heads of their own"),
            std::string::npos);
}

/// A rate at which the loss rises again soon.
const std::vector<std::string> kRising{"train.learning_rate=0.05", "train.steps=200",
                                       "train.patience=3", "model.dropout=0.0",
                                       "train.accumulation=1"};

TEST_F(ProxRun, EndsWithTheBestWeightsWhereAsked) {
  auto keeping = kRising;
  keeping.push_back("train.keep_best=true");
  const RunRecord last = run(spec(kRising), "last");
  const RunRecord best = run(spec(keeping), "best");
  ASSERT_EQ(best.status, RunStatus::early_stopped);
  EXPECT_EQ(best.best_loss, last.best_loss);
  EXPECT_EQ(best.final_loss, last.final_loss);
  EXPECT_LT(best.best_loss, best.final_loss);
  const auto loss_of = [&](const std::string& name) {
    return evaluate_weights(load_weights(folder_ / name), *tokens_, data::Split::valid, 512, 1)
        .loss;
  };
  EXPECT_NEAR(loss_of("best"), best.best_loss, 1e-5);
  EXPECT_NEAR(loss_of("last"), last.final_loss, 1e-5);
}

TEST_F(ProxRun, KeepsTheBestAcrossAStop) {
  auto keeping = kRising;
  keeping.push_back("train.keep_best=true");
  const RunRecord whole = run(spec(keeping), "whole");
  int steps = 0;
  const auto stop = [&] { return ++steps == static_cast<int>(whole.steps) - 2; };
  EXPECT_EQ(run(spec(keeping), "stopped", false, {}, stop).status, RunStatus::interrupted);
  EXPECT_EQ(run(spec(keeping), "stopped", true).best_loss, whole.best_loss);
  expect_equal_runs("whole", "stopped");
  // A lost record is made again, from the best checkpoint on.
  std::filesystem::remove(RunFolder(folder_ / "stopped").record());
  EXPECT_EQ(run(spec(keeping), "stopped", true).final_loss, whole.final_loss);
  expect_equal_runs("whole", "stopped");
}

}  // namespace
}  // namespace fathom::train
