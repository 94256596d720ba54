// Studies whose files were damaged, mixed up or come from elsewhere.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "core/error.h"
#include "core/files.h"
#include "planted_study.h"
#include "study/export.h"
#include "study/ledger.h"
#include "study/study_index.h"
#include "study/worker_process.h"
#include "tiny_study.h"

namespace fathom::study {
namespace {

namespace fs = std::filesystem;

TEST(StudyDamage, TheRecordOfAnotherRunIsNotThisRunsRecord) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  run_all(study);
  const std::string points = file_bytes(study.folder.points());
  const StudyRunFolder mixed_up = study.folder.run(study.runs[0].id);
  fs::copy_file(study.folder.run(study.runs[1].id).record(), mixed_up.record(),
                fs::copy_options::overwrite_existing);
  const std::vector<std::string> damage = damaged_records(collect_rows(study));
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_EQ(damage[0], mixed_up.record().string() + ": is the record of run " + study.runs[1].id);
  EXPECT_EQ(points_of(collect_rows(study)).size(), 3u);
  run_all(study);
  EXPECT_TRUE(fs::exists(mixed_up.record().string() + ".broken"));
  EXPECT_EQ(file_bytes(study.folder.points()), points);
}

TEST(StudyDamage, AChangedDigitOfARecordReachesNoTable) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  run_all(study);
  const std::string points = file_bytes(study.folder.points());
  const fs::path record = study.folder.run(study.runs[2].id).record();
  std::string text = file_bytes(record);
  char& digit = text[text.find("\"final_loss\": ") + 14];
  digit = digit == '5' ? '4' : '5';
  std::ofstream(record) << text;
  EXPECT_EQ(points_of(collect_rows(study)).size(), 3u);
  run_all(study);
  EXPECT_EQ(file_bytes(study.folder.points()), points);
}

TEST(StudyDamage, AnExportStaysInItsFolder) {
  const PlantedStudy planted;
  train::RunRecord record = planted_records().front();
  const StudyRunFolder folder = planted.folder.run(record.id);
  std::ofstream(folder.metrics()) << "{\"step\":1,\"loss\":1}\n";
  record.id = "../../outside";
  write_run_record(record, folder.record());
  export_tensorboard(planted.folder, collect_rows(planted.folder.path()),
                     planted.folder.path() / "out" / "events");
  EXPECT_FALSE(fs::exists(planted.folder.path() / "out" / "outside"));
  for (const auto& entry : fs::recursive_directory_iterator(planted.folder.path())) {
    EXPECT_EQ(entry.path().string().find("outside"), std::string::npos) << entry.path();
  }
}

class ForeignTable {
 public:
  ForeignTable(const fs::path& file, const char* sql) {
    sqlite3_open(file.c_str(), &database_);
    EXPECT_EQ(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database_);
  }
  ~ForeignTable() { sqlite3_close(database_); }

 private:
  sqlite3* database_ = nullptr;
};

TEST(StudyDamage, TriggersOfAForeignTableAreNotRun) {
  const PlantedStudy planted;
  const Study study = open_study(planted.folder.path());
  rebuild_tables(planted.folder.path());
  const std::string trigger =
      "CREATE TRIGGER t AFTER INSERT ON runs BEGIN UPDATE runs SET loss = 0.001; END;"
      "CREATE TRIGGER u AFTER UPDATE ON runs BEGIN UPDATE runs SET loss = 0.001; END";
  { const ForeignTable foreign(planted.folder.index(), trigger.c_str()); }
  StudyIndex(planted.folder.index()).update(collect_rows(study).front());
  EXPECT_TRUE(StudyIndex(planted.folder.index()).query("loss < 0.01", "").empty());
  rebuild_tables(planted.folder.path());
  EXPECT_EQ(StudyIndex(planted.folder.index()).query("loss > 1", "").size(), 24u);
  EXPECT_EQ(file_bytes(planted.folder.index()).find("TRIGGER"), std::string::npos);
}

TEST(StudyDamage, ALockedTableIsNotedAndTheStudyGoesOn) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  std::vector<std::string> notes;
  std::unique_ptr<ForeignTable> browser;
  ExecutorEvents events;
  events.begun = [&](std::size_t, std::size_t) {
    browser = std::make_unique<ForeignTable>(study.folder.index(), "BEGIN EXCLUSIVE");
  };
  events.note = [&](const std::string& text) { notes.push_back(text); };
  EXPECT_EQ(run_all(study, events).done, 4u);
  ASSERT_FALSE(notes.empty());
  EXPECT_NE(notes[0].find("the study's tables are out of date"), std::string::npos) << notes[0];
  browser.reset();
  EXPECT_EQ(points_of(rebuild_tables(study.folder.path())).size(), 4u);
}

TEST(StudyDamage, AWorkersNotesReachTheExecutor) {
  const ScratchFolder folder;
  const auto log = folder.write("worker.log", "fathom: x\nnote: state.safetensors: cut\n");
  EXPECT_EQ(notes_in(log), std::vector<std::string>{"state.safetensors: cut"});
}

TEST(StudyDamage, ADamagedCheckpointIsNamedAndTheStudyEndsAlike) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  run_all(study);
  const StudyRunFolder folder = study.folder.run(study.runs[0].id);
  const std::string whole = file_bytes(folder.checkpoint());
  fs::remove(folder.record());
  fs::resize_file(folder.checkpoint(), whole.size() / 2);
  std::string notes;
  ExecutorEvents events;
  events.note = [&](const std::string& text) { notes += text + "\n"; };
  EXPECT_EQ(run_all(study, events).done, 4u);
  EXPECT_NE(notes.find("put aside as state.safetensors.broken"), std::string::npos) << notes;
  EXPECT_TRUE(file_bytes(folder.checkpoint()) == whole);
}

TEST(StudyDamage, AStudyFileThatChangedIsNotTrainedFrom) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  const std::string text = file_bytes(study.folder.spec());
  std::string changed = text;
  changed.replace(changed.find("0.003"), 5, "0.007");
  std::ofstream(study.folder.spec()) << changed;
  EXPECT_NE(error_of<DataError>([&] { open_study(tiny.directory); }).find("study.toml: damaged"),
            std::string::npos);
  std::ofstream(study.folder.spec()) << changed.substr(changed.find('\n') + 1);
  EXPECT_EQ(open_study(tiny.directory).runs.size(), 4u);
}

}  // namespace
}  // namespace fathom::study
