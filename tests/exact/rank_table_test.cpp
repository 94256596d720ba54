#include "exact/rank_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "core/error.h"
#include "core/files.h"
#include "scratch_folder.h"

namespace fathom::exact {
namespace {

namespace fs = std::filesystem;

class RankTable : public testing::Test {
 protected:
  static std::vector<RankSetting> settings() {
    std::vector<RankSetting> settings;
    for (std::size_t width = 1; width <= 4; ++width) {
      RankSetting setting;
      setting.layers = 2;
      setting.width = width;
      setting.positions = 4;
      setting.partition = "0011";
      settings.push_back(setting);
    }
    return settings;
  }

  /// Runs the table and returns how many settings were computed rather than remembered.
  std::size_t run(const RankOptions& options = {}) {
    RankRecords records(path_);
    std::size_t computed = 0;
    TableProgress progress;
    progress.finished = [&](std::size_t, const RankResult&, std::size_t, std::size_t) {
      ++computed;
    };
    const auto results = compute_ranks(settings(), options, &records, progress);
    const std::size_t expected[] = {5, 18, 49, 110};
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(results[i].rank, expected[i]);
      EXPECT_EQ(results[i].rmax, expected[i]);
      EXPECT_EQ(results[i].status, RankStatus::exact);
      EXPECT_EQ(results[i].blocks.size(), 5u);
    }
    return computed;
  }

  ScratchFolder scratch_;
  fs::path path_ = scratch_ / "ranks.jsonl";
};

TEST_F(RankTable, RemembersFinishedSettings) {
  EXPECT_EQ(run(), 4u);
  EXPECT_EQ(run(), 0u);
  RankOptions other;
  other.seed = 2;
  EXPECT_EQ(run(other), 4u);
}

TEST_F(RankTable, ALineCutShortCostsOneSettingOnly) {
  EXPECT_EQ(run(), 4u);
  const std::string whole = read_text_file(path_);
  fs::resize_file(path_, whole.size() - 40);  // as if the power failed while the last was written
  EXPECT_EQ(run(), 1u);
  EXPECT_EQ(run(), 0u);
  const std::string mended = read_text_file(path_);
  EXPECT_EQ(std::count(mended.begin(), mended.end(), '\n'), 4);
}

TEST_F(RankTable, RefusesForeignFilesAndLeavesThemAlone) {
  const std::string text = "# notes\nnot a record";
  std::ofstream(path_) << text;
  EXPECT_THROW(RankRecords{path_}, DataError);
  EXPECT_EQ(read_text_file(path_), text);
  std::ofstream(path_) << "{\"key\": \"v1\", \"rank\": \"many\"}\n";
  EXPECT_THROW(RankRecords{path_}, DataError);
}

TEST_F(RankTable, AChangedDigitIsNamedWithItsLine) {
  run();
  std::string text = read_text_file(path_);
  const std::size_t at = text.find("\"rank\":49");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 9, "\"rank\":48");
  std::ofstream(path_) << text;
  const std::string message = error_of<DataError>([&] { RankRecords records(path_); });
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n');
  EXPECT_NE(message.find(path_.string() + ":" + std::to_string(line) + ": damaged"),
            std::string::npos)
      << message;
}

TEST_F(RankTable, OneProcessAtATime) {
  const RankRecords first(path_);
  EXPECT_THROW(RankRecords{path_}, ConfigError);
}

TEST_F(RankTable, RefusesWhatCannotFitBeforeTheFirstStarts) {
  std::vector<RankSetting> list = settings();
  list.push_back(list.back());
  list.back().width = 32;
  list.back().positions = 64;
  list.back().partition = std::string(32, '0') + std::string(32, '1');
  bool started = false;
  TableProgress progress;
  progress.finished = [&](std::size_t, const RankResult&, std::size_t, std::size_t) {
    started = true;
  };
  RankOptions options;
  options.memory_bytes = 1e9;
  EXPECT_THROW(compute_ranks(list, options, nullptr, progress), ConfigError);
  EXPECT_FALSE(started);
}

}  // namespace
}  // namespace fathom::exact
