// The law of a study follows from its run folders and from nothing else.
#include "study/fit.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "fits/study_law.h"
#include "planted_study.h"
#include "study/ledger.h"

namespace fathom::study {
namespace {

namespace fs = std::filesystem;

/// Few starts and replicates: what is fitted matters here, not how well.
std::optional<fits::StudyFit> fit_folder(const StudyFolder& folder) {
  fits::FitOptions options;
  options.replicates = 100;
  options.joint_replicates = 5;
  options.joint.starts = 5;
  return fit_runs(collect_rows(folder.path()), {}, options);
}

std::string law_of(const StudyFolder& folder) {
  const auto fit = fit_folder(folder);
  return fit && fit->has_law() ? fits::study_law_text(fits::study_law_data(*fit)) : "";
}

TEST(StudyFit, ADeletedOrStaleTableOfPointsChangesNothing) {
  const PlantedStudy study;
  rebuild_tables(study.folder.path());
  const std::string law = law_of(study.folder);
  ASSERT_NE(law, "");
  fs::remove(study.folder.points());
  fs::remove(study.folder.index());
  EXPECT_EQ(law_of(study.folder), law);
  study.scratch.write("study/points.csv",
                      "id,layers,width,params,tokens,loss,seed\nold,2,64,98304,1e6,9.9,1\n");
  EXPECT_EQ(law_of(study.folder), law);
}

TEST(StudyFit, OfARunThatEndedWithoutItsSubmitterKnows) {
  const PlantedStudy study;
  rebuild_tables(study.folder.path());
  const std::string before = law_of(study.folder);
  train::RunRecord late = planted_record(5, 3, 99);
  late.final_loss += 0.05;
  write_planted(study.folder, late);  // no executor saw it: the tables do not have it
  EXPECT_NE(law_of(study.folder), before);
  EXPECT_EQ(points_of(collect_rows(study.folder.path())).size(), 25u);
}

TEST(StudyFit, DivergedRunsAndOthersThatAskedForAreLeftOut) {
  std::vector<train::RunRecord> records = planted_records();
  records[3].status = RunStatus::diverged;
  records[3].final_loss = NAN;
  const PlantedStudy study(records);
  const auto rows = collect_rows(study.folder.path());
  EXPECT_EQ(points_of(rows).size(), 23u);
  fits::PointSelection selection;
  selection.where = {{"layers", "2", false}, {"seed", "1", true}};
  EXPECT_EQ(points_of(rows, selection).size(), 18u);
  selection.params_column = "total_params";
  const fits::RunPoint point = points_of(rows, selection).front();
  EXPECT_EQ(point.params, 12 * 4 * point.width * point.width + 1000 * point.width);
  selection.where = {{"layer", "2", true}};
  EXPECT_NE(error_of<DataError>([&] { points_of(rows, selection); }).find("'layers'"),
            std::string::npos);
}

TEST(SaveLaw, IsReplacedOrRemovedAndNeverStale) {
  const PlantedStudy study;
  const auto fit = fit_folder(study.folder);
  EXPECT_TRUE(save_law(study.folder, fit));
  EXPECT_EQ(file_bytes(study.folder.law()), law_of(study.folder));
  // Runs of one depth fix no law: the old one no longer follows from the runs.
  for (const train::RunRecord& record : planted_records()) {
    if (record.layers != 2) fs::remove_all(study.folder.run(record.id).path());
  }
  const auto poor = fit_folder(study.folder);
  ASSERT_TRUE(poor);
  EXPECT_FALSE(poor->warnings.empty());
  EXPECT_FALSE(save_law(study.folder, poor));
  EXPECT_FALSE(fs::exists(study.folder.law()));
  EXPECT_TRUE(save_law(study.folder, fit));
  EXPECT_FALSE(save_law(study.folder, {}));
  EXPECT_FALSE(fs::exists(study.folder.law()));
}

TEST(SaveLaw, AnUnchangedLawIsNotWrittenAgain) {
  const PlantedStudy study;
  const auto fit = fit_folder(study.folder);
  save_law(study.folder, fit);
  const auto then = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(study.folder.law(), then);
  save_law(study.folder, fit);
  EXPECT_EQ(fs::last_write_time(study.folder.law()), then);
}

TEST(CollectRows, OfAStudyWhoseFoldersWereNotKeptReadsItsTable) {
  const PlantedStudy study;
  rebuild_tables(study.folder.path());
  const std::string law = law_of(study.folder);
  fs::remove_all(study.folder.runs());
  EXPECT_EQ(law_of(study.folder), law);
  EXPECT_EQ(find_row(study.folder.path(), "run101").layers, 2);
}

}  // namespace
}  // namespace fathom::study
