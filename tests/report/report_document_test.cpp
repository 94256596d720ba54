#include "report/report_document.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "study/planted_study.h"
#include "study/tiny_study.h"

namespace fathom::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// As if the study's runs had been trained: a record and three evaluations each.
void write_results(const study::Study& study) {
  int place = 0;
  for (const study::PlannedRun& run : study.runs) {
    train::RunRecord record = study::planted_record(place++, 0, 1);
    record.id = run.id;
    record.layers = run.spec.model.layers;
    record.width = run.spec.model.width;
    study::write_planted(study.folder, record);
    std::string lines;
    for (const int step : {10, 20, 30}) {
      lines += "{\"step\":" + std::to_string(step) + ",\"eval_loss\":3.5,\"bits_per_byte\":1.5}\n";
    }
    write_file_atomically(study.folder.run(run.id).metrics(), lines);
  }
}

Json document_of(const study::Study& study) {
  return report_document(study, study::collect_rows(study), {});
}

TEST(ReportDocument, OfAStudyThatWasOnlyPlanned) {
  const study::TinyStudy tiny;
  const Json document = document_of(tiny.begin());
  EXPECT_EQ(document["runs"].size(), 4u);
  EXPECT_EQ(document["runs"][0]["status"], "pending");
  EXPECT_TRUE(document["runs"][0]["loss"].is_null());
  EXPECT_EQ(document["answer"][0], "None of 4 runs has finished.");
}

TEST(ReportDocument, TellsWhatWasTrainedAndOnWhat) {
  const study::TinyStudy tiny;
  const study::Study study = tiny.begin();
  write_results(study);
  const Json document = document_of(study);
  EXPECT_EQ(document["schema"], "fathom.report.v1");
  EXPECT_EQ(document["title"], "Tiny");
  EXPECT_EQ(document["answer"].size(), 2u);
  EXPECT_TRUE(document["fit"].is_null());
  EXPECT_EQ(document["spec"]["tokenizer"]["vocabulary"], 257);
  EXPECT_EQ(document["spec"]["corpus"]["bytes"], fs::file_size(tiny.corpus));
  ASSERT_EQ(document["curves"].size(), 4u);
  // Three evaluations; a step is 4 sequences of 32 tokens.
  EXPECT_EQ(document["curves"][0]["points"],
            Json::parse("[[1280.0,3.5],[2560.0,3.5],[3840.0,3.5]]"));
  EXPECT_EQ(document["published"]["a"], 5.039);
  EXPECT_EQ(document["published"]["b"], 0.0555);
  EXPECT_TRUE(document["published"]["correlation"].is_null());
}

TEST(ReportDocument, CarriesTheFitAndKeepsTheLawInStep) {
  const study::PlantedStudy planted;
  const Json document = make_report_document(planted.folder.path());
  EXPECT_EQ(document["answer"], document["fit"]["answer"]);
  const Json& law = document["fit"]["law"];
  EXPECT_NEAR(law["a"].get<double>(), 4.2, 0.15);
  EXPECT_LT(law["correlation"].get<double>(), -0.5);
  EXPECT_TRUE(fs::exists(planted.folder.law()));
}

}  // namespace
}  // namespace fathom::report
