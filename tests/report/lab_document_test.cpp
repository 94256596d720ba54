// The lab's document: every claim, the results of a directory, and web/schema/lab.schema.json.
#include "report/lab_document.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "lab/frame/claim.h"
#include "lab/frame/runner.h"
#include "report/render_report.h"
#include "schema_check.h"
#include "scratch_folder.h"

namespace fathom::report {
namespace {

using nlohmann::json;

const SchemaFile kLabSchemaFile("lab.schema.json");

lab::LabResult run(const std::string& id, const std::vector<lab::GivenOption>& given,
                   lab::LabRecords& records) {
  const lab::Setup setup = lab::resolve_setup(lab::find_experiment(id), given, true);
  return lab::run_claim(lab::find_claim(id), setup, 1, &records);
}

/// A directory with a measured claim, an exact one and a question of one's own.
struct Directory {
  ScratchFolder folder;
  std::vector<lab::LabResult> results;

  Directory() {
    lab::LabRecords records(folder.path());
    results.push_back(run("masked-collapse", {{"seeds", "4"}}, records));
    results.push_back(run("corollary-1", {}, records));
    run("hard-attention", {{"regex", "(ab)*"}, {"length", "4"}}, records);
  }
  json document() const { return json::parse(make_lab_document(folder.path()).dump()); }
};

const json& claim_in(const json& document, const std::string& id) {
  for (const json& claim : document["claims"]) {
    if (claim["id"] == id) return claim;
  }
  throw InternalError("no claim " + id);
}

TEST(LabDocument, FollowsItsSchemaAndTheSchemaNamesNothingElse) {
  const Directory directory;
  const json document = directory.document();
  EXPECT_EQ(kLabSchemaFile.complaints(document), std::vector<std::string>{});
  EXPECT_EQ(kLabSchemaFile.not_in(document), std::set<std::string>{});
}

TEST(LabDocument, HoldsEveryClaimAndTheNumbersOfItsRun) {
  const Directory directory;
  const json document = directory.document();
  ASSERT_EQ(document["claims"].size(), lab::claims().size());
  for (const lab::LabResult& result : directory.results) {
    const json& shown = claim_in(document, result.claim->id)["result"];
    EXPECT_EQ(shown["verdict"], to_string(result.judgement.verdict));
    ASSERT_EQ(shown["criteria"].size(), result.judgement.criteria.size());
    for (std::size_t i = 0; i < result.judgement.criteria.size(); ++i) {
      const lab::JudgedCriterion& judged = result.judgement.criteria[i];
      EXPECT_EQ(shown["criteria"][i]["measured"], judged.measure.value.value());
      EXPECT_EQ(shown["criteria"][i]["outcome"], to_string(judged.outcome));
    }
    ASSERT_EQ(shown["charts"].size(), result.conclusion.charts.size());
    for (std::size_t i = 0; i < result.conclusion.charts.size(); ++i) {
      const lab::ChartSeries& series = result.conclusion.charts[i].series.front();
      EXPECT_EQ(shown["charts"][i]["series"][0]["points"].size(), series.dots.size());
      EXPECT_EQ(shown["charts"][i]["series"][0]["points"].back()["y"], series.dots.back().y);
    }
  }
  EXPECT_TRUE(claim_in(document, "admin")["result"].is_null());
  const json& own = claim_in(document, "hard-attention");
  EXPECT_TRUE(own["result"].is_null());
  ASSERT_EQ(own["questions"].size(), 1u);
  EXPECT_EQ(own["questions"][0]["setup"]["regex"], "(ab)*");
}

TEST(LabDocument, RefusesDirectoriesWithoutResultsAndDamagedOnes) {
  const ScratchFolder empty;
  EXPECT_THROW(make_lab_document(empty.path()), DataError);
  const Directory directory;
  const auto file = directory.folder.path() / "results" / "corollary-1.json";
  json result = json::parse(read_text_file(file));
  result.erase("tables");
  std::ofstream(file) << result.dump();
  try {
    make_lab_document(directory.folder.path());
    FAIL() << "a result without tables was taken";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("corollary-1"), std::string::npos) << error.what();
  }
}

TEST(LabDocument, StandsInThePageAsData) {
  nlohmann::ordered_json document{{"schema", kLabSchema}, {"title", "</script><b>"}};
  const std::string page = render_lab(document);
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script\\u003e"), std::string::npos);
}

}  // namespace
}  // namespace fathom::report
