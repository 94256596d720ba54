#include "train/run_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "core/error.h"
#include "field_count.h"
#include "scratch_folder.h"
#include "train/checkpoint_notes.h"
#include "train/divergence_watch.h"
#include "train/metrics_file.h"

namespace fathom::train {
namespace {

RunRecord some_record() {
  RunRecord record;
  record.id = "abc";
  record.status = RunStatus::diverged;
  record.reason = "step 3: the loss is not finite";
  record.layers = 6;
  record.width = 128;
  record.heads = 4;
  record.seed = 7;
  record.parameters = 2000;
  record.non_embedding = 1500;
  record.steps = 10;
  record.tokens = 1280;
  record.final_loss = record.final_bits_per_byte = NAN;
  record.best_loss = 3.25;
  record.flops = 1e9;
  record.seconds = 2;
  record.timed_steps = 5;
  record.memory_bytes = 99;
  record.metrics_bytes = 1234;
  return record;
}

struct CountColumns {
  std::size_t count = 0;
  template <class T>
  void operator()(const Column&, const T&) {
    ++count;
  }
  void derived(const Column&, double) {}
};

TEST(RunRecord, EveryFieldIsAColumn) {
  const RunRecord record;
  CountColumns columns;
  RunRecord::visit_columns(record, columns);
  EXPECT_EQ(columns.count + 2, field_count<RunRecord>());  // metrics_bytes and scores are none
}

TEST(RunRecord, ReadsBackWhatItWrote) {
  const ScratchFolder folder;
  write_run_record(some_record(), folder / "record.json");
  const RunRecord read = read_run_record(folder / "record.json");
  EXPECT_EQ(to_json(read), to_json(some_record()));
  EXPECT_TRUE(std::isnan(read.final_loss));
  EXPECT_EQ(read.tokens_per_second(), 320);  // half of 1280 tokens in two seconds
}

TEST(RunRecord, ItsNamesAreThoseOfEveryVersion) {
  const auto json = to_json(some_record());
  for (const char* field :
       {"schema", "id", "outcome", "reason", "layers", "width", "heads", "seed", "parameters",
        "non_embedding_parameters", "steps", "tokens", "final_loss", "best_loss",
        "final_bits_per_byte", "flops", "seconds", "timed_steps", "memory_bytes"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  EXPECT_EQ(json["outcome"], "diverged");
  EXPECT_TRUE(json["final_loss"].is_null());
}

/// As the first versions wrote it: without shape, seed, FLOPs and the steps of the last process.
TEST(RunRecord, OldOnesAreRead) {
  const ScratchFolder folder;
  const auto path = folder.write(
      "record.json",
      R"({"schema":"fathom.record.v1","id":"old","outcome":"finished","parameters":2000,"steps":10,
          "tokens":1280,"final_loss":3.5,"best_loss":3.25,"final_bits_per_byte":1.5,
          "seconds":4.0,"memory_bytes":1})");
  const RunRecord record = read_run_record(path);
  EXPECT_EQ(record.status, RunStatus::finished);
  EXPECT_EQ(record.final_loss, 3.5);
  EXPECT_EQ(record.timed_steps, 10);
  EXPECT_EQ(record.layers, 0);
}

TEST(RunRecord, WhatIsNoneIsRefused) {
  const ScratchFolder folder;
  for (const char* text :
       {"", "[]", "{}", R"({"id":"x","outcome":"finished"})",
        R"({"id":"x","outcome":"running","steps":1,"tokens":1,"final_loss":1})",
        R"({"id":"x","outcome":"great","steps":1,"tokens":1,"final_loss":1})",
        R"({"id":7,"outcome":"finished","steps":1,"tokens":1,"final_loss":1})",
        R"({"id":"x","outcome":"finished","steps":1.5,"tokens":1,"final_loss":1})",
        R"({"id":"x","outcome":"finished","steps":1,"tokens":1e308,"final_loss":1})",
        R"({"id":"x","outcome":"finished","steps":1,"tokens":1,"final_loss":1e309})"}) {
    const auto path = folder.write("record.json", text);
    EXPECT_THROW(read_run_record(path), DataError) << text;
  }
}

TEST(RunRecord, OneThatWasChangedIsRefused) {
  const ScratchFolder folder;
  write_run_record(some_record(), folder / "record.json");
  std::string text = file_bytes(folder / "record.json");
  text.replace(text.find("3.25"), 4, "3.35");
  EXPECT_NE(error_of<DataError>([&] {
              read_run_record(folder.write("record.json", text));
            }).find("record.json: damaged"),
            std::string::npos);
}

TEST(MetricsFile, TellsTheStoryAndItsEnd) {
  const ScratchFolder folder;
  const auto path = folder / "metrics.jsonl";
  EXPECT_EQ(read_run_tail(path).step, 0);
  MetricsWriter writer(path);
  writer.open(0);
  writer.add(1, StepResult{4.5, 0.5, 0.001});
  writer.add(1, Evaluation{4.25, 2.0});
  const std::uint64_t kept = writer.bytes();
  writer.add(2, StepResult{NAN, 0.25, 0.002});
  const std::string written =
      std::regex_replace(file_bytes(path), std::regex(",\"checksum\":\"xxh3:[0-9a-f]{16}\""), "");
  EXPECT_EQ(written,
            "{\"step\":1,\"loss\":4.5,\"gradient_norm\":0.5,\"learning_rate\":0.001}\n"
            "{\"step\":1,\"eval_loss\":4.25,\"bits_per_byte\":2.0}\n"
            "{\"step\":2,\"loss\":null,\"gradient_norm\":0.25,\"learning_rate\":0.002}\n");
  std::ofstream(path, std::ios::app) << "{\"step\":3,\"lo";  // cut short by a kill
  const RunTail tail = read_run_tail(path);
  EXPECT_EQ(tail.step, 2);
  EXPECT_EQ(tail.loss, 0);
  EXPECT_EQ(tail.eval_loss, 4.25);
  std::vector<std::int64_t> steps;
  read_metrics(path, [&](const MetricsEvent& event) { steps.push_back(event.step); });
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 1, 2}));
  MetricsWriter again(path);
  again.open(kept);
  EXPECT_EQ(read_run_tail(path).step, 1);
}

TEST(CheckpointNotes, ReadBackAndForgiveTheirElders) {
  CheckpointNotes notes;
  notes.metrics_bytes = 123;
  notes.stale = 2;
  notes.watch = "4.5 4.25";
  notes.record = some_record();
  notes.record.best_loss = INFINITY;
  notes.record.metrics_bytes = 0;  // no column: the notes have a count of their own
  auto metadata = notes.to_metadata();
  const auto read = CheckpointNotes::from_metadata(metadata, "c");
  EXPECT_EQ(read.to_metadata()["best_loss"], "inf");
  EXPECT_EQ(read.metrics_bytes, 123u);
  EXPECT_EQ(to_json(read.record), to_json(notes.record));
  // The first version had none of the record but the best loss.
  const auto fields = to_json(notes.record);
  for (const auto& [field, value] : fields.items()) metadata.erase(field);
  metadata["best_loss"] = "2.5";
  RunRecord begun;
  begun.layers = 3;
  const RunRecord old = CheckpointNotes::from_metadata(metadata, "c", begun).record;
  EXPECT_FALSE(is_done(old.status));
  EXPECT_EQ(old.best_loss, 2.5);
  EXPECT_EQ(old.layers, 3);
  metadata.erase("stale");
  EXPECT_EQ(error_of<DataError>([&] { CheckpointNotes::from_metadata(metadata, "c"); }),
            "c: lacks 'stale'");
}

TEST(DivergenceWatch, FollowsTheRunningMean) {
  DivergenceWatch watch;
  EXPECT_EQ(watch.look({2, 1, 0}), "");
  EXPECT_EQ(watch.look({NAN, 1, 0}), "the loss is not finite");
  EXPECT_EQ(watch.look({2, INFINITY, 0}), "the gradient is not finite");
  // The mean rises by a tenth of the way to 12 each step: 3, 3.9, 4.71 > 1.5 * 2 + 1.
  EXPECT_EQ(watch.look({12, 1, 0}), "");
  DivergenceWatch resumed;
  resumed.load(watch.save());
  EXPECT_EQ(resumed.look({12, 1, 0}), "");
  EXPECT_EQ(resumed.look({12, 1, 0}), "the loss rose to 4.710 from 2.000");
}

}  // namespace
}  // namespace fathom::train
