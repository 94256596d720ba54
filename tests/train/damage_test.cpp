// Runs whose files were damaged, lost or mixed up: it is named, and the run ends with the same
// bits.
#include <gtest/gtest.h>

#include "core/file_lock.h"
#include "train/metrics_file.h"
#include "train/run.h"
#include "train/run_fixture.h"
#include "train/run_folder.h"

namespace fathom::train {
namespace {

/// A run stopped after step 7 in folder `name`: checkpoints of the steps 7 and 6.
class DamagedRunTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    run(spec(), "whole");
    int steps = 0;
    run(
        spec(), "parts", false, [&](const auto&) { ++steps; }, [&] { return steps == 7; });
  }
  std::filesystem::path part(const std::string& name) const { return folder_ / "parts" / name; }

  /// Resumes, and expects the end of the run that nothing happened to. What was said meanwhile.
  std::string resume() {
    RunOptions options;
    options.directory = folder_ / "parts";
    options.resume = true;
    std::string notes;
    options.on_note = [&](const std::string& text) { notes += text + "\n"; };
    EXPECT_EQ(run_training(spec(), *tokens_, options).status, RunStatus::finished);
    return notes;
  }
  void flip_byte(const std::filesystem::path& file, std::size_t from_end) const {
    std::string bytes = file_bytes(file);
    bytes[bytes.size() - from_end] ^= 0x10;
    std::ofstream(file, std::ios::binary) << bytes;
  }
};

TEST_F(DamagedRunTest, AFlippedBitInACheckpointIsNamedAndTheOneBeforeTakesOver) {
  flip_byte(part("checkpoint/state.safetensors"), 1000);  // a moment
  const std::string notes = resume();
  EXPECT_NE(notes.find("state.safetensors: tensor 'moment2."), std::string::npos) << notes;
  EXPECT_NE(notes.find("is damaged"), std::string::npos) << notes;
  EXPECT_TRUE(std::filesystem::exists(part("checkpoint/state.safetensors.broken")));
  EXPECT_FALSE(std::filesystem::exists(part("checkpoint/previous.safetensors")));
  expect_equal_runs("whole", "parts");
}

TEST_F(DamagedRunTest, WithoutAWholeCheckpointTheRunBeginsAnew) {
  std::filesystem::resize_file(part("checkpoint/state.safetensors"), 5000);
  std::filesystem::resize_file(part("checkpoint/previous.safetensors"), 50);
  const std::string notes = resume();
  EXPECT_NE(notes.find("previous.safetensors"), std::string::npos) << notes;
  expect_equal_runs("whole", "parts");
}

TEST_F(DamagedRunTest, ACheckpointOfAnotherRunIsNotTakenForItsOwn) {
  int steps = 0;
  run(
      spec({"train.seed=2"}), "other", false, [&](const auto&) { ++steps; },
      [&] { return steps == 7; });
  std::filesystem::copy_file(folder_ / "other" / "checkpoint" / "state.safetensors",
                             part("checkpoint/state.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  const std::string notes = resume();
  EXPECT_NE(notes.find("belongs to run "), std::string::npos) << notes;
  expect_equal_runs("whole", "parts");
}

TEST_F(DamagedRunTest, MetricsThatLostTheirEndAreNotFilledWithZeros) {
  const auto metrics = part("metrics.jsonl");
  std::filesystem::resize_file(metrics, std::filesystem::file_size(metrics) / 2);
  const std::string notes = resume();
  EXPECT_NE(notes.find("metrics.jsonl: has lost lines"), std::string::npos) << notes;
  EXPECT_EQ(file_bytes(metrics).find('\0'), std::string::npos);
  EXPECT_TRUE(damaged_metrics(metrics, 0).empty());
  const std::string whole = file("whole", "metrics.jsonl"), cut = file_bytes(metrics);
  EXPECT_TRUE(whole.ends_with(cut.substr(cut.rfind("{\"step\":8,"))));
}

TEST_F(DamagedRunTest, DamagedLinesOfMetricsAreLeftOutAndNamed) {
  resume();
  const auto metrics = part("metrics.jsonl");
  const std::string text = file_bytes(metrics);
  const std::size_t bytes = text.size();
  const auto steps = [&] {
    std::string seen;
    read_metrics(metrics, [&](const MetricsEvent& event) {
      seen += std::to_string(event.step) + (event.training ? " " : "e ");
    });
    return seen;
  };
  EXPECT_EQ(steps(), "1 2 3 4 4e 5 6 7 8 8e 9 10 11 12 12e ");
  EXPECT_TRUE(damaged_metrics(metrics, bytes).empty());
  std::string damaged = text;
  const std::size_t place = damaged.find("\"loss\":", damaged.find("{\"step\":3,")) + 8;
  damaged[place] = damaged[place] == '5' ? '4' : '5';
  folder_.write("parts/metrics.jsonl", damaged);
  EXPECT_EQ(steps(), "1 2 4 4e 5 6 7 8 8e 9 10 11 12 12e ");
  EXPECT_EQ(damaged_metrics(metrics, bytes),
            std::vector<std::string>{metrics.string() + ":3: damaged line, left out"});
  folder_.write("parts/metrics.jsonl", text.substr(0, bytes / 2));
  EXPECT_EQ(damaged_metrics(metrics, bytes).size(), 1u);
  folder_.write("parts/metrics.jsonl", "{\"step\":\"x\"}\n{\"step\":1e400}\n" + text);
  EXPECT_EQ(damaged_metrics(metrics, 0).size(), 2u);
}

TEST_F(DamagedRunTest, TemporaryFilesOfKilledWritersGo) {
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  const auto left = part("checkpoint/state.safetensors." + std::to_string(gone) + ".tmp");
  const auto alive = part("checkpoint/state.safetensors." + std::to_string(getppid()) + ".tmp");
  const auto foreign = part("notes.tmp");
  for (const auto& file : {left, alive, foreign}) std::ofstream(file) << "x";
  resume();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(alive));
  EXPECT_TRUE(std::filesystem::exists(foreign));
}

TEST_F(DamagedRunTest, OneProcessAtATime) {
  const auto claim = FileLock::acquire(RunFolder(folder_ / "parts").claim(), "another", 0);
  ASSERT_TRUE(claim);
  EXPECT_NE(error_of<ConfigError>([&] { run(spec(), "parts", true); }).find("is training this run"),
            std::string::npos);
}

TEST_F(RunTest, AFlippedTokenIsNoticed) {
  const auto file = folder_ / "tokens" / "train.tokens";
  std::string bytes = file_bytes(file);
  bytes[bytes.size() / 2 & ~std::size_t{1}] ^= 1;  // the low byte of an id: another letter
  std::ofstream(file, std::ios::binary) << bytes;
  tokens_ = std::make_unique<data::TokenSet>(folder_ / "tokens");
  EXPECT_TRUE(error_of<DataError>([&] {
                run(spec(), "a");
              }).starts_with(file.string() + ": damaged among ids "));
}

TEST_F(RunTest, ATokenFileCutUnderATrainerIsAnErrorAndNoSignal) {
  EXPECT_NE(error_of<DataError>([&] {
              run(spec(), "a", false, [&](const RunProgress& progress) {
                if (progress.step == 2) {
                  std::filesystem::resize_file(folder_ / "tokens" / "train.tokens", 200);
                }
              });
            }).find("has shortened this file"),
            std::string::npos);
}

}  // namespace
}  // namespace fathom::train
