// The index and the exports of a study.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "study/export.h"
#include "study/ledger.h"
#include "study/study_index.h"
#include "study/tfevents.h"
#include "tiny_study.h"

namespace fathom::study {
namespace {

namespace fs = std::filesystem;

/// A folder runs/ID with a record as train/run.h writes it.
void write_record(const ScratchFolder& folder, int i) {
  const nlohmann::json record{
      {"schema", "fathom.record.v1"},
      {"id", "run" + std::to_string(i)},
      {"outcome", i % 7 == 0 ? "diverged" : "finished"},
      {"reason", ""},
      {"layers", 1 + i % 4},
      {"width", 64},
      {"heads", 4},
      {"seed", i},
      {"parameters", 2000},
      {"non_embedding_parameters", 1000},
      {"steps", 10},
      {"tokens", 1280},
      {"final_loss", i % 7 == 0 ? nlohmann::json() : nlohmann::json(3.0 + i)},
      {"best_loss", 3.0},
      {"final_bits_per_byte", 1.5},
      {"flops", 1e9},
      {"seconds", 2.0},
      {"timed_steps", 5},
      {"memory_bytes", 1}};
  folder.write("runs/run" + std::to_string(i) + "/record.json", record.dump());
}

TEST(StudyIndex, IsRebuiltFromTheFoldersAlone) {
  const ScratchFolder folder;
  for (int i = 0; i < 50; ++i) write_record(folder, i);
  folder.write("runs/half/record.json", "{\"schema\": \"fathom.rec");
  const auto rows = rebuild_tables(folder.path());
  EXPECT_EQ(rows.size(), 51u);
  StudyIndex index(StudyFolder(folder.path()).index());
  EXPECT_EQ(index.query("", "").size(), 51u);
  const auto chosen = index.query("layers = 2 and status = 'finished'", "loss desc");
  ASSERT_EQ(chosen.size(), 11u);  // of 13 with i % 4 = 1, 21 and 49 diverged
  EXPECT_GT(chosen[0].final_loss, chosen[1].final_loss);
  EXPECT_EQ(chosen[0].tokens_per_second(), 320);  // half of 1280 tokens in two seconds
  EXPECT_THROW(index.query("no such column = 1", ""), ConfigError);
  const std::string csv = file_bytes(folder / "points.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 50 - 8);
  EXPECT_NE(csv.find("\nrun1,2,64,1000,1280,4,1,\n"), std::string::npos);
  EXPECT_TRUE(csv.starts_with("id,layers,width,params,tokens,loss,seed,xxh3:"))
      << csv.substr(0, 100);
}

TEST(StudyIndex, ABrokenDatabaseIsMadeAnew) {
  const ScratchFolder folder;
  write_record(folder, 1);
  folder.write("study.db", "this is no database, but a text long enough to be looked at as one");
  rebuild_tables(folder.path());
  EXPECT_EQ(StudyIndex(StudyFolder(folder.path()).index()).query("", "").size(), 1u);
}

TEST(TfEvents, ChecksumsAndFrames) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);  // the check value of CRC-32C
  EventFile events(100.5);
  events.scalar("valid/loss", 300, 2.5, 101.0);
  const std::string& bytes = events.bytes();
  std::size_t at = 0;
  std::vector<std::string> records;
  const auto masked = [](std::string_view text) {
    const std::uint32_t crc = crc32c(text);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  while (at < bytes.size()) {
    std::uint64_t length = 0;
    std::uint32_t crc = 0;
    std::memcpy(&length, &bytes[at], 8);
    std::memcpy(&crc, &bytes[at + 8], 4);
    EXPECT_EQ(crc, masked(std::string_view(bytes).substr(at, 8)));
    records.push_back(bytes.substr(at + 12, length));
    std::memcpy(&crc, &bytes[at + 12 + length], 4);
    EXPECT_EQ(crc, masked(records.back()));
    at += 16 + length;
  }
  ASSERT_EQ(records.size(), 2u);
  EXPECT_NE(records[0].find("brain.Event:2"), std::string::npos);
  // step 300 is the varint ac 02 behind key 0x10; 2.5f is 40 20 00 00.
  EXPECT_NE(records[1].find(std::string("\x10\xac\x02", 3)), std::string::npos);
  EXPECT_NE(records[1].find("valid/loss"), std::string::npos);
  EXPECT_NE(records[1].find(std::string("\x15\x00\x00\x20\x40", 5)), std::string::npos);
}

TEST(Export, EveryFormatOfATrainedStudy) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  run_all(study);
  const auto rows = collect_rows(study);
  const std::string csv = export_csv(rows);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  const auto json = export_json(rows);
  EXPECT_EQ(json["runs"].size(), 4u);
  EXPECT_EQ(export_tensorboard(study.folder, rows, tiny.folder / "tb"), 4u);
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(tiny.folder / "tb")) {
    if (!entry.is_regular_file()) continue;
    ++files;
    EXPECT_NE(entry.path().filename().string().find("tfevents"), std::string::npos);
    EXPECT_GT(entry.file_size(), 30u * 40);  // thirty steps
  }
  EXPECT_EQ(files, 4);
}

TEST(Curve, IsThinnedToItsLimitAndKeepsTheEnd) {
  const ScratchFolder folder;
  std::string lines;
  for (int i = 1; i <= 200; ++i) {
    lines += "{\"step\":" + std::to_string(i) + ",\"eval_loss\":" + std::to_string(500 - i) + "}\n";
  }
  folder.write("metrics.jsonl", lines);
  const auto curve = read_curve(train::RunFolder(folder.path()), 50);
  ASSERT_EQ(curve.size(), 50u);
  EXPECT_EQ(curve.back(), (std::pair<std::int64_t, double>{200, 300}));
}

}  // namespace
}  // namespace fathom::study
