// Studies on worker processes: done once, resumed, killed, failed, shared stems.
#include "study/local_executor.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>

#include "core/error.h"
#include "core/files.h"
#include "study/study_rows.h"
#include "tiny_study.h"

namespace fathom::study {
namespace {

namespace fs = std::filesystem;

/// All that a run leaves behind but its times.
std::string traces(const Study& study, const std::string& id) {
  const StudyRunFolder folder = study.folder.run(id);
  train::RunRecord record = train::read_run_record(folder.record());
  return file_bytes(folder.metrics()) + file_bytes(folder.checkpoint()) +
         std::to_string(record.final_loss) + " " + std::to_string(record.best_loss) + " " +
         std::to_string(record.tokens);
}

std::vector<std::string> all_traces(const Study& study) {
  std::vector<std::string> all;
  for (const PlannedRun& run : study.runs) all.push_back(traces(study, run.id));
  return all;
}

/// The process that holds a run's claim.
pid_t worker_of(const Study& study, const PlannedRun& run) {
  const auto holder = FileLock::holder(study.folder.run(run.id).claim());
  return holder ? holder->pid : 0;
}

TEST(LocalExecutor, TrainsEveryRunOnceAndRecordsIt) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  ASSERT_EQ(study.runs.size(), 4u);
  int ended = 0;
  ExecutorEvents events;
  events.ended = [&](const PlannedRun& run, const RunState& state) {
    ++ended;
    EXPECT_EQ(state.status, RunStatus::finished) << state.reason;
    EXPECT_EQ(state.record->layers, run.spec.model.layers);
    EXPECT_EQ(state.record->non_embedding, run.parameters);
    EXPECT_EQ(state.record->parameters, run.total_parameters);
    EXPECT_NEAR(state.record->flops / run.flops, 1, 1e-9);
  };
  EXPECT_EQ(run_all(study, events).done, 4u);
  EXPECT_EQ(ended, 4);
  const auto before = all_traces(study);
  EXPECT_EQ(run_all(study, events).done, 4u);
  EXPECT_EQ(ended, 4);  // nothing was repeated
  EXPECT_EQ(all_traces(study), before);
  const auto points = points_of(collect_rows(study));
  ASSERT_EQ(points.size(), 4u);
  for (const fits::RunPoint& point : points) {
    EXPECT_EQ(point.tokens, 3840);
    EXPECT_LT(point.loss, std::log(257.0));
  }
}

TEST(LocalExecutor, AStopCheckpointsAndTheNextCallGoesOnBitForBit) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  run_all(study);
  const auto undisturbed = all_traces(study);
  fs::remove_all(tiny.directory / "runs");
  bool stop = false;
  ExecutorEvents events;
  events.stop = [&] { return stop; };
  events.tick = [&](const Snapshot& snapshot) { stop |= !snapshot.running.empty(); };
  const ExecutorResult first = run_all(study, events);
  EXPECT_TRUE(first.stopped);
  EXPECT_LT(first.done, 4u);
  const ExecutorResult second = run_all(study);
  EXPECT_FALSE(second.stopped);
  EXPECT_EQ(second.done, 4u);
  EXPECT_EQ(all_traces(study), undisturbed);
}

TEST(LocalExecutor, AKilledWorkerIsStartedAgain) {
  const TinyStudy tiny;
  const Study study = tiny.begin({"budget.tokens=25600"});
  bool killed = false;
  std::string note;
  ExecutorEvents events;
  events.note = [&](const std::string& text) { note = text; };
  events.tick = [&](const Snapshot& snapshot) {
    if (killed || snapshot.running.empty()) return;
    const pid_t worker = worker_of(study, *snapshot.running.front().run);
    if (worker > 1) killed = kill(worker, SIGKILL) == 0;
  };
  const ExecutorResult result = run_all(study, events);
  EXPECT_TRUE(killed);
  EXPECT_EQ(result.done, 4u);
  EXPECT_EQ(result.failed, 0u);
  EXPECT_NE(note.find("signal 9"), std::string::npos) << note;
}

TEST(LocalExecutor, AFailureIsRecordedWithItsReasonAndTriedAgainLater) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  // A folder where the metrics should go: the worker says so and ends.
  const StudyRunFolder folder = study.folder.run(study.runs[0].id);
  fs::create_directories(folder.metrics());
  const ExecutorResult result = run_all(study);
  EXPECT_EQ(result.failed, 1u);
  EXPECT_EQ(result.done, 3u);
  const RunState state = read_run_state(folder);
  EXPECT_EQ(state.status, RunStatus::failed);
  EXPECT_NE(state.reason.find("metrics.jsonl"), std::string::npos) << state.reason;
  fs::remove_all(folder.metrics());
  EXPECT_EQ(run_all(study).done, 4u);
  EXPECT_FALSE(fs::exists(folder.failure()));
}

TEST(LocalExecutor, ADivergedRunIsAResultWithAReason) {
  const TinyStudy tiny;
  const Study study = tiny.begin({"train.learning_rate=1000.0", "train.clip_norm=0.0",
                                  "train.warmup=0", "budget.tokens=25600"});
  const ExecutorResult result = run_all(study);
  EXPECT_EQ(result.done, 4u);
  EXPECT_EQ(result.failed, 0u);
  const RunState state = read_run_state(study.folder.run(study.runs[0].id));
  EXPECT_EQ(state.status, RunStatus::diverged);
  EXPECT_NE(state.reason.find("loss"), std::string::npos) << state.reason;
  EXPECT_TRUE(points_of(collect_rows(study)).empty());
}

TEST(LocalExecutor, AHalfWrittenRecordIsPutAsideAndTheRunEndedFromItsCheckpoint) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  run_all(study);
  const auto undisturbed = all_traces(study);
  const StudyRunFolder folder = study.folder.run(study.runs[1].id);
  const std::string whole = file_bytes(folder.record());
  fs::resize_file(folder.record(), whole.size() / 2);
  EXPECT_TRUE(!read_run_state(folder).damage.empty());
  EXPECT_EQ(run_all(study).done, 4u);
  EXPECT_TRUE(fs::exists(folder.record().string() + ".broken"));
  EXPECT_EQ(all_traces(study), undisturbed);
}

TEST(LocalExecutor, ARunFromAStemIsTheRunFromScratch) {
  const TinyStudy tiny;
  const std::vector<std::string> settings{"budget.tokens=[3840, 7680]", "train.schedule=wsd",
                                          "train.decay=0.2", "train.warmup=3", "model.dropout=0.1"};
  Study study = tiny.begin(settings);
  ASSERT_EQ(study.runs.size(), 8u);
  for (PlannedRun& run : study.runs) run.stem_from.clear();
  run_all(study);
  std::map<std::string, std::string> alone;
  for (const PlannedRun& run : study.runs) alone[run.id] = traces(study, run.id);
  fs::remove_all(tiny.directory / "runs");
  study = tiny.begin(settings);
  run_all(study, {}, 1);
  int shared = 0;
  for (const PlannedRun& run : study.runs) {
    EXPECT_EQ(traces(study, run.id), alone[run.id]);
    const auto record = train::read_run_record(study.folder.run(run.id).record());
    if (run.shared_steps == 0) continue;
    ++shared;
    EXPECT_EQ(record.timed_steps, record.steps - run.shared_steps);
    EXPECT_FALSE(fs::exists(study.folder.run(run.stem_from).stem()));
  }
  EXPECT_EQ(shared, 4);
}

TEST(LocalExecutor, AHeldRunIsNotTrainedTwice) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  prepare_run_folder(study, study.runs[0]);
  std::optional<FileLock> claim =
      FileLock::acquire(study.folder.run(study.runs[0].id).claim(), "test", 0);
  ASSERT_TRUE(claim);
  bool saw_three = false;
  ExecutorEvents events;
  events.tick = [&](const Snapshot& snapshot) {
    if (snapshot.done < 3 || !claim) return;
    saw_three = true;
    EXPECT_FALSE(fs::exists(study.folder.run(study.runs[0].id).metrics()));
    claim.reset();  // now it may go on
  };
  EXPECT_EQ(run_all(study, events).done, 4u);
  EXPECT_TRUE(saw_three);
}

}  // namespace
}  // namespace fathom::study
