// What the program writes follows web/schema/report.schema.json, and the schema names nothing that
// the program does not write.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "report/report_document.h"
#include "schema_check.h"
#include "study/planted_study.h"
#include "study/tiny_study.h"

namespace fathom::report {
namespace {

using nlohmann::json;

const SchemaFile kReportSchemaFile("report.schema.json");

/// A study with tokens whose planned runs have planted results; longer runs end 5 % lower.
struct FullStudy {
  study::TinyStudy tiny;
  study::Study study;

  explicit FullStudy(const std::string& tokens)
      : study(tiny.begin({shapes(), "grid.head_size=1", "budget.tokens=" + tokens})) {
    for (const train::RunRecord& planted : study::planted_records()) {
      for (const study::PlannedRun& run : study.runs) {
        const model::ModelSpec& model = run.spec.model;
        if (model.layers != planted.layers || model.width != planted.width) continue;
        train::RunRecord record = planted;
        record.id = run.id;
        record.tokens = run.tokens;
        if (run.tokens > 4000) record.final_loss *= 0.95;
        study::write_planted(study.folder, record);
      }
    }
  }

  static std::string shapes() {
    std::string list;
    for (const train::RunRecord& record : study::planted_records()) {
      list += fmt::format("{}'{}x{}'", list.empty() ? "" : ", ", record.layers, record.width);
    }
    return "grid.shapes=[" + list + "]";
  }
};

json plain(const nlohmann::ordered_json& document) {
  return json::parse(document.dump());
}

TEST(ReportSchema, DescribesAllThatIsWrittenAndNothingElse) {
  std::optional<std::set<std::string>> missing;  // in every document so far
  for (const char* tokens : {"3840", "[3840, 7680]"}) {
    const FullStudy full(tokens);
    const json document = plain(make_report_document(full.study.folder.path()));
    ASSERT_FALSE(document["fit"]["law"].is_null());
    ASSERT_FALSE(document["fit"]["joint"].is_null());
    ASSERT_FALSE(document["fit"]["surface"].is_null());
    EXPECT_EQ(kReportSchemaFile.complaints(document), std::vector<std::string>{});
    const std::set<std::string> absent = kReportSchemaFile.not_in(document);
    if (!missing) missing = absent;
    std::erase_if(*missing, [&](const std::string& name) { return !absent.contains(name); });
  }
  EXPECT_EQ(*missing, std::set<std::string>{});
}

TEST(ReportSchema, HoldsForStudiesThatAreNotDone) {
  const study::TinyStudy tiny;
  const json planned = plain(make_report_document(tiny.begin().folder.path()));
  EXPECT_EQ(kReportSchemaFile.complaints(planned), std::vector<std::string>{});
  const study::PlantedStudy one(std::vector{study::planted_record(0, 0, 1)});
  EXPECT_EQ(kReportSchemaFile.complaints(plain(make_report_document(one.folder.path()))),
            std::vector<std::string>{});
}

TEST(ReportSchema, NamesTheColumnsOfARun) {
  const auto fields = kReportSchemaFile.text()["definitions"]["run"]["properties"];
  std::set<std::string> named, columns;
  for (const auto& [key, field] : fields.items()) named.insert(key);
  for (const std::string& column : study::column_names()) columns.insert(column);
  EXPECT_EQ(named, columns);
}

TEST(ReportSchema, RefusesWhatItDoesNotName) {
  const study::PlantedStudy planted;
  json document = plain(make_report_document(planted.folder.path()));
  document["fit"]["law"]["covariance"] = -0.01;
  EXPECT_FALSE(kReportSchemaFile.complaints(document).empty());
  EXPECT_FALSE(kReportSchemaFile.complaints({{"schema", "fathom.report.v2"}}).empty());
}

}  // namespace
}  // namespace fathom::report
