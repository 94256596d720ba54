#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "run_command.h"
#include "scratch_folder.h"
#include "study/planted_study.h"

namespace fathom {
namespace {

/// Four depths, six sizes; depth L starts to win over its neighbour at N = 12 L e^(8.4 + 0.16 L).
void write_points(const std::filesystem::path& path) {
  std::ofstream file(path);
  file << "id,layers,width,params,tokens,loss,seed\n";
  const int depths[] = {2, 4, 8, 12};
  int run = 0;
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 6; ++i) {
      const double layers = depths[k];
      const double width = std::round(std::sqrt(1e5 * std::pow(300.0, i / 5.0) / (12 * layers)));
      const double x = std::log(12 * layers * width * width);
      double log_loss = std::log(1.7 + 90 * std::exp(-0.34 * x));
      for (int j = 1; j <= k; ++j) {
        const double crossing = std::log(12.0 * depths[j]) + 2 * (4.2 + 0.08 * depths[j]);
        log_loss -= 0.06 * (1 - std::exp(-(x - crossing) / 2.5));
      }
      // Noise of a fixed pattern, 0.05 %.
      log_loss += 0.0005 * std::sin(12.9898 * ++run);
      file << "r" << run << "," << depths[k] << "," << width << "," << std::exp(x) << ",2e7,"
           << std::exp(log_loss) << ",0\n";
    }
  }
}

TEST(StudyFitCommand, JsonCarriesEveryPromisedField) {
  const ScratchFolder folder;
  write_points(folder.path() / "points.csv");
  const std::string law = (folder.path() / "law.json").string();
  const CommandResult result = run_command({"study", "fit", folder.path().string(), "--save", law,
                                            "--json", "--replicates", "30", "--starts", "10"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], "fathom.study_fit.v1");
  ASSERT_EQ(json["transitions"].size(), 6u);
  for (const auto& t : json["transitions"]) {
    for (const char* field : {"shallow", "deep", "params", "low", "high", "status", "width"}) {
      EXPECT_TRUE(t.contains(field)) << field;
    }
  }
  EXPECT_EQ(json["transitions"][0]["status"], "crossing");
  EXPECT_NEAR(json["law"]["a"].get<double>(), 4.2, 0.15);
  EXPECT_NEAR(json["law"]["b"].get<double>(), 0.08, 0.015);
  for (const char* field : {"a_error", "b_error", "points"}) {
    EXPECT_TRUE(json["law"].contains(field)) << field;
  }
  ASSERT_FALSE(json["joint"].is_null());
  EXPECT_TRUE(json["joint"].contains("coefficients"));
  EXPECT_TRUE(json["joint"]["holdout_error"].is_number());
  EXPECT_NE(json["verdict"].get<std::string>().find("deeper network wins"), std::string::npos);

  // The saved law plans, by file and by folder.
  for (const std::string& path : {law, folder.path().string()}) {
    const CommandResult plan = run_command({"plan", "3M", "--law", "study:" + path, "--json"});
    ASSERT_EQ(plan.code, 0) << plan.err;
    const auto planned = nlohmann::json::parse(plan.out);
    EXPECT_GT(planned["unrounded"]["layers"].get<double>(), 2);
    EXPECT_LT(planned["unrounded"]["layers"].get<double>(), 40);
    // The study has one training length, so its law cannot tell how many tokens a shape needs.
    EXPECT_EQ(planned["objectives"][0]["tokens_to_equal_loss"], 60e6);
    EXPECT_EQ(planned["laws"][0]["name"], "study:" + (folder.path() / "law.json").string());
  }
  const CommandResult text = run_command({"study", "fit", folder.path().string()});
  EXPECT_NE(text.out.find("4 over 2"), std::string::npos);
  EXPECT_NE(text.out.find("Levine 2020"), std::string::npos);

  // Some of the runs: another law, which does not replace the study's.
  std::filesystem::remove(law);
  const CommandResult some =
      run_command({"study", "fit", folder.path().string(), "--where", "layers!=4"});
  EXPECT_EQ(some.code, 0) << some.err;
  EXPECT_EQ(some.out.find("4 over 2"), std::string::npos);
  EXPECT_NE(some.out.find("over 2"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(law));
}

nlohmann::json fit_json(const study::PlantedStudy& study) {
  const CommandResult result = run_command({"study", "fit", study.folder.name(), "--json"});
  EXPECT_EQ(result.code, 0) << result.err;
  auto json = nlohmann::json::parse(result.out);
  json.erase("schema");
  json.erase("fathom");
  return json;
}

nlohmann::json report_json(const study::PlantedStudy& study) {
  const CommandResult result = run_command({"study", "report", study.folder.name()});
  EXPECT_EQ(result.code, 0) << result.err;
  return nlohmann::json::parse(file_bytes(study.folder.report_document()));
}

TEST(StudyFitCommand, AndTheReportSayTheSameWhateverThePointsSay) {
  const study::PlantedStudy study;
  ASSERT_EQ(run_command({"study", "reindex", study.folder.name()}).code, 0);
  const auto fit = fit_json(study);
  const std::string law = file_bytes(study.folder.law());
  EXPECT_EQ(report_json(study)["fit"], fit);
  EXPECT_EQ(file_bytes(study.folder.law()), law);
  // Deleted: the command that submitted the runs was lost before it wrote them.
  std::filesystem::remove(study.folder.points());
  EXPECT_EQ(fit_json(study), fit);
  EXPECT_EQ(report_json(study)["fit"], fit);
  // Stale: most runs ended after it was written.
  study.scratch.write("study/points.csv",
                      "id,layers,width,params,tokens,loss,seed\nrun101,2,65,101400,2e7,9.9,1\n");
  EXPECT_EQ(fit_json(study), fit);
  EXPECT_EQ(report_json(study)["fit"], fit);
  EXPECT_EQ(file_bytes(study.folder.law()), law);
}

TEST(StudyFitCommand, RunsThatFixNoLawAreReportedAllTheSame) {
  std::vector<train::RunRecord> records = study::planted_records();
  std::erase_if(records, [](const train::RunRecord& record) { return record.layers != 2; });
  const study::PlantedStudy study(records);
  study.scratch.write("study/law.json", "the law of runs that are no more");
  const CommandResult text = run_command({"study", "fit", study.folder.name()});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("6 runs"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("! no joint law"), std::string::npos) << text.out;
  EXPECT_EQ(text.err, "");
  EXPECT_FALSE(std::filesystem::exists(study.folder.law()));
  study.scratch.write("study/law.json", "the law of runs that are no more");
  const auto document = report_json(study);
  EXPECT_TRUE(document["fit"]["law"].is_null());
  EXPECT_FALSE(document["fit"]["warnings"].empty());
  EXPECT_FALSE(std::filesystem::exists(study.folder.law()));
  // A law that was asked for by name and is not there is an error, after everything was said.
  const CommandResult asked =
      run_command({"study", "fit", study.folder.name(), "--save", study.scratch / "own.json"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_NE(asked.out.find("! no joint law"), std::string::npos) << asked.out;
}

TEST(StudyFitCommand, SaysWhatIsWrong) {
  const ScratchFolder folder;
  EXPECT_EQ(run_command({"study", "fit", folder.path().string()}).code, 3);
  const auto file = folder.path() / "bad.csv";
  std::ofstream(file) << "layers,width\n2,64\n";
  EXPECT_EQ(run_command({"study", "fit", file.string()}).code, 3);
  std::ofstream(file) << "layers,width,params,tokens,loss\n2,64,1e5,1e6,nan\n";
  EXPECT_EQ(run_command({"study", "fit", file.string()}).code, 3);
  std::ofstream(file) << "layers,width,params,tokens,loss\n2,64,1e5,1e6,3.5\n";
  EXPECT_EQ(run_command({"study", "fit", file.string()}).code, 0);
  EXPECT_EQ(run_command({"study", "fit", file.string(), "--where", "phase"}).code, 2);
  // One run fixes no law.
  const auto law = (folder.path() / "law.json").string();
  EXPECT_EQ(run_command({"study", "fit", file.string(), "--save", law}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(law));
  EXPECT_EQ(run_command({"plan", "1B", "--law", "study:" + law}).code, 3);
}

}  // namespace
}  // namespace fathom
