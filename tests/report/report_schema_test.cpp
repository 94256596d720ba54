// What the program writes follows web/schema/report.schema.json, and the schema names nothing that
// the program does not write.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "core/files.h"
#include "fits/surface_json.h"
#include "report/report_document.h"
#include "study/planted_study.h"
#include "study/tiny_study.h"

namespace fathom::report {
namespace {

using nlohmann::json;

json read_schema() {
  return json::parse(read_text_file(FATHOM_SOURCE_DIR "/web/schema/report.schema.json"));
}

/// Complaints with their places; none when the document is valid.
std::vector<std::string> complaints(const json& document) {
  const json text = read_schema();
  const valijson::adapters::NlohmannJsonAdapter adapter(text);
  valijson::Schema schema;
  valijson::SchemaParser().populateSchema(adapter, schema);
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter target(document);
  valijson::Validator(valijson::Validator::kStrongTypes).validate(schema, target, &results);
  std::vector<std::string> all;
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    std::string place;
    for (const std::string& part : error.context) place += part;
    all.push_back(place + ": " + error.description);
  }
  return all;
}

/// Ticks off every property of the schema that a document holds.
class Coverage {
 public:
  explicit Coverage(const json& schema) : schema_(schema) { collect(schema, "document"); }

  void visit(const json& part, const json& value, const std::string& name) {
    if (part.contains("$ref")) {
      const std::string target = part["$ref"].get<std::string>();
      const std::string definition = target.substr(target.rfind('/') + 1);
      return visit(schema_.at("definitions").at(definition), value, definition);
    }
    if (part.contains("oneOf") && !value.is_null()) {
      for (const json& choice : part["oneOf"]) visit(choice, value, name);
    }
    if (value.is_array() && part.contains("items")) {
      for (const json& item : value) visit(part["items"], item, name);
    }
    if (!value.is_object()) return;
    for (const auto& [key, field] : value.items()) {
      const bool listed = part.contains("properties") && part["properties"].contains(key);
      missing_.erase(name + "." + key);
      if (listed) {
        visit(part["properties"][key], field, key);
      } else if (part.contains("additionalProperties")) {
        visit(part["additionalProperties"], field, key);
      }
    }
  }
  const std::set<std::string>& missing() const { return missing_; }

 private:
  void collect(const json& schema, const std::string& name) {
    if (schema.contains("properties")) {
      for (const auto& [key, field] : schema["properties"].items()) {
        missing_.insert(name + "." + key);
      }
    }
    if (!schema.contains("definitions")) return;
    for (const auto& [key, definition] : schema["definitions"].items()) collect(definition, key);
  }

  const json& schema_;
  std::set<std::string> missing_;
};

/// A study with tokens whose planned runs have planted results.
struct FullStudy {
  study::TinyStudy tiny;
  study::Study study = tiny.begin({shapes(), "grid.head_size=1"});

  FullStudy() {
    for (const train::RunRecord& planted : study::planted_records()) {
      for (const study::PlannedRun& run : study.runs) {
        const model::ModelSpec& model = run.spec.model;
        if (model.layers != planted.layers || model.width != planted.width) continue;
        train::RunRecord record = planted;
        record.id = run.id;
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
  const FullStudy full;
  json document = plain(make_report_document(full.study.folder.path()));
  // The planted runs have one training length; a law of one more, as a fit of several writes it.
  fits::SurfaceFit lengths;
  lengths.length_move = fits::LengthMove{};
  lengths.lengths.emplace_back();
  const json written = plain(fits::surface_json(lengths));
  document["fit"]["surface"]["length_move"] = written["length_move"];
  document["fit"]["surface"]["lengths"] = written["lengths"];
  ASSERT_FALSE(document["fit"]["law"].is_null());
  ASSERT_FALSE(document["fit"]["joint"].is_null());
  EXPECT_EQ(complaints(document), std::vector<std::string>{});
  const json schema = read_schema();
  Coverage coverage(schema);
  coverage.visit(schema, document, "document");
  EXPECT_EQ(coverage.missing(), std::set<std::string>{});
}

TEST(ReportSchema, HoldsForStudiesThatAreNotDone) {
  const study::TinyStudy tiny;
  const json planned = plain(make_report_document(tiny.begin().folder.path()));
  EXPECT_EQ(complaints(planned), std::vector<std::string>{});
  const study::PlantedStudy one(std::vector{study::planted_record(0, 0, 1)});
  EXPECT_EQ(complaints(plain(make_report_document(one.folder.path()))), std::vector<std::string>{});
}

TEST(ReportSchema, NamesTheColumnsOfARun) {
  const auto fields = read_schema()["definitions"]["run"]["properties"];
  std::set<std::string> named, columns;
  for (const auto& [key, field] : fields.items()) named.insert(key);
  for (const std::string& column : study::column_names()) columns.insert(column);
  EXPECT_EQ(named, columns);
}

TEST(ReportSchema, RefusesWhatItDoesNotName) {
  const study::PlantedStudy planted;
  json document = plain(make_report_document(planted.folder.path()));
  document["fit"]["law"]["covariance"] = -0.01;
  EXPECT_FALSE(complaints(document).empty());
  EXPECT_FALSE(complaints({{"schema", "fathom.report/2"}}).empty());
}

}  // namespace
}  // namespace fathom::report
