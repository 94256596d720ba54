// The tables of a study follow every run that ends, whoever ends it.
#include "study/ledger.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "fits/run_points_csv.h"
#include "planted_study.h"
#include "study/study_index.h"
#include "tiny_study.h"

namespace fathom::study {
namespace {

namespace fs = std::filesystem;

std::size_t lines_of(const fs::path& file) {
  const std::string text = file_bytes(file);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Ledger, IsKeptByTheExecutorRunByRun) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  std::size_t ended = 0;
  ExecutorEvents events;
  events.ended = [&](const PlannedRun& run, const RunState&) {
    ++ended;
    // At least: a run that ended beside this one may stand there already.
    EXPECT_GE(lines_of(study.folder.points()), 1 + ended);
    const auto rows = StudyIndex(study.folder.index()).query("status = 'finished'", "");
    EXPECT_GE(rows.size(), ended);
    EXPECT_TRUE(
        std::any_of(rows.begin(), rows.end(), [&](const auto& r) { return r.id == run.id; }));
  };
  run_all(study, events);
  EXPECT_EQ(ended, 4u);
  // The order is that of the spec, whichever run ended first.
  const auto rows = StudyIndex(study.folder.index()).query("", "");
  ASSERT_EQ(rows.size(), 4u);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].id, study.runs[i].id);
  EXPECT_EQ(file_bytes(study.folder.points()),
            fits::run_points_csv(points_of(collect_rows(study))));
}

TEST(Ledger, ADeletedTableIsMadeAnewByTheNextRunThatEnds) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  std::size_t ended = 0;
  ExecutorEvents events;
  events.ended = [&](const PlannedRun&, const RunState&) {
    if (++ended > 2) return;
    fs::remove(study.folder.index());
    fs::remove(study.folder.points());
  };
  run_all(study, events, 1);
  EXPECT_EQ(StudyIndex(study.folder.index()).query("status = 'finished'", "").size(), 4u);
  EXPECT_EQ(lines_of(study.folder.points()), 5u);
}

TEST(Ledger, SeveralWritersTakeTurns) {
  const PlantedStudy planted(std::vector<train::RunRecord>{});
  const Study study = open_study(planted.folder.path());
  Ledger first(study), second(study);
  const auto records = planted_records();
  for (std::size_t i = 0; i < records.size(); ++i) {
    write_planted(planted.folder, records[i]);
    PlannedRun run;
    run.id = records[i].id;
    (i % 2 == 0 ? first : second).update(run, read_run_state(planted.folder.run(run.id)));
  }
  EXPECT_EQ(lines_of(planted.folder.points()), 25u);
  EXPECT_EQ(StudyIndex(planted.folder.index()).query("loss > 0", "").size(), 24u);
}

TEST(StudyIndex, OfAnotherVersionIsMadeAnew) {
  const PlantedStudy planted;
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(planted.folder.index().c_str(), &database), SQLITE_OK);
  sqlite3_exec(database, "CREATE TABLE runs(id TEXT PRIMARY KEY, layers INTEGER)", nullptr, nullptr,
               nullptr);
  sqlite3_close(database);
  rebuild_tables(planted.folder.path());
  EXPECT_EQ(StudyIndex(planted.folder.index()).query("memory_bytes = 1048576", "").size(), 24u);
}

}  // namespace
}  // namespace fathom::study
