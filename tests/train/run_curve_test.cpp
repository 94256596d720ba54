// Reading a run's losses while it trains.
#include "train/run_curve.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "scratch_folder.h"
#include "train/metrics_file.h"

namespace fathom::train {
namespace {

TEST(RunCurve, ReadsWhatTheWriterWrites) {
  const ScratchFolder folder;
  MetricsWriter writer(folder / "metrics.jsonl");
  writer.open(0);
  RunCurve curve(folder / "metrics.jsonl");
  EXPECT_FALSE(curve.read_on());
  writer.add(1, StepResult{5.5, 0.8, 1e-3});
  writer.add(1, Evaluation{5.25, 2.5});
  EXPECT_TRUE(curve.read_on());
  EXPECT_FALSE(curve.read_on());
  writer.add(2, StepResult{NAN, 0.8, 1e-3});  // a loss that is none
  writer.add(3, StepResult{4.5, 0.8, 1e-3});
  EXPECT_TRUE(curve.read_on());
  ASSERT_EQ(curve.held_out().size(), 1u);
  EXPECT_EQ(curve.held_out()[0].loss, 5.25);
  ASSERT_EQ(curve.training().size(), 2u);
  EXPECT_EQ(curve.training()[1].step, 3);
  EXPECT_EQ(curve.training()[1].loss, 4.5);
}

TEST(RunCurve, LeavesALineThatIsNotWhole) {
  const ScratchFolder folder;
  const auto path = folder / "metrics.jsonl";
  RunCurve curve(path);
  std::ofstream(path) << "{\"step\":1,\"eval_loss\":5.0}\n{\"step\":2,\"eval_lo";
  EXPECT_TRUE(curve.read_on());
  EXPECT_EQ(curve.held_out().size(), 1u);
  std::ofstream(path, std::ios::app) << "ss\":4.0}\n";
  EXPECT_TRUE(curve.read_on());
  ASSERT_EQ(curve.held_out().size(), 2u);
  EXPECT_EQ(curve.held_out()[1].loss, 4.0);
}

TEST(RunCurve, LeavesDamagedLinesAndOtherThingsThanFilesOut) {
  const ScratchFolder folder;
  const auto path = folder / "metrics.jsonl";
  MetricsWriter writer(path);
  writer.open(0);
  writer.add(1, Evaluation{5.25, 2.5});
  writer.add(2, Evaluation{4.25, 2.0});
  std::string text = file_bytes(path);
  text[text.find("4.25")] = '3';
  folder.write("metrics.jsonl", text);
  RunCurve curve(path);
  EXPECT_TRUE(curve.read_on());
  ASSERT_EQ(curve.held_out().size(), 1u);
  EXPECT_EQ(curve.held_out()[0].loss, 5.25);
  for (const char* name : {"folder", "pipe"}) {
    const auto odd = folder / name;
    if (odd.filename() == "pipe") {
      ASSERT_EQ(mkfifo(odd.c_str(), 0600), 0);
    } else {
      std::filesystem::create_directory(odd);
    }
    EXPECT_FALSE(RunCurve(odd).read_on());
    EXPECT_EQ(read_run_tail(odd).step, 0);
    EXPECT_EQ(damaged_metrics(odd, 100),
              std::vector<std::string>{odd.string() + ": is no file; its lines are missing"});
  }
}

TEST(RunCurve, StartsAgainWhenAResumeCutTheFile) {
  const ScratchFolder folder;
  const auto path = folder / "metrics.jsonl";
  RunCurve curve(path);
  std::ofstream(path) << "{\"step\":1,\"eval_loss\":5.0}\n{\"step\":2,\"eval_loss\":4.0}\n";
  curve.read_on();
  std::ofstream(path) << "{\"step\":1,\"eval_loss\":5.0}\n";
  EXPECT_TRUE(curve.read_on());
  EXPECT_EQ(curve.held_out().size(), 1u);
}

TEST(RunCurve, AveragesLongRuns) {
  const ScratchFolder folder;
  const auto path = folder / "metrics.jsonl";
  constexpr int kSteps = 100'000;
  {
    std::ofstream stream(path);
    for (int step = 1; step <= kSteps; ++step) {
      stream << "{\"step\":" << step << ",\"loss\":" << (step % 2 == 0 ? 3 : 5) << "}\n";
    }
  }
  RunCurve curve(path);
  curve.read_on();
  EXPECT_LT(curve.training().size(), RunCurve::kMostTraining);
  EXPECT_GE(curve.training().size(), RunCurve::kMostTraining / 2);
  for (const RunCurve::Point& point : curve.training()) EXPECT_DOUBLE_EQ(point.loss, 4);
  EXPECT_GT(curve.training().back().step, 0.97 * kSteps);
}

TEST(Thinned, KeepsTheLastPoint) {
  std::vector<RunCurve::Point> points;
  for (int i = 1; i <= 100; ++i) points.push_back({static_cast<double>(i), 1.0});
  const auto kept = thinned(points, 7);
  EXPECT_EQ(kept.size(), 7u);
  EXPECT_EQ(kept.back().step, 100);
  EXPECT_EQ(thinned(points, 100).size(), 100u);
}

}  // namespace
}  // namespace fathom::train
