#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "run_command.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

const std::string kDocument = R"({"schema":"fathom.report.v1","title":"Small study"})";

TEST(StudyReport, WritesAPageBesideTheDocument) {
  const ScratchFolder folder;
  const std::string document = folder.write("d.json", kDocument);
  const CommandResult result = run_command({"study", "report", document});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, (folder / "d.html").string() + "\n");
  EXPECT_EQ(result.err, "");
  EXPECT_NE(file_bytes(folder / "d.html").find("<title>Small study</title>"), std::string::npos);
}

TEST(StudyReport, FindsTheDocumentOfAFolder) {
  const ScratchFolder folder;
  folder.write("study/report.json", kDocument);
  const std::string page = folder / "out.html";
  const CommandResult result =
      run_command({"study", "report", folder / "study", "-o", page, "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["path"], page);
  EXPECT_EQ(json["bytes"], file_bytes(page).size());
}

TEST(StudyReport, SaysWhatIsWrongInOneLine) {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& source, const std::string& words) {
    const CommandResult result = run_command({"study", "report", source});
    EXPECT_EQ(result.code, 3) << source;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  refused(folder / "missing.json", "missing.json");
  refused(folder.path(), "no study here");
  refused(folder.write("broken.json", "{\"schema\": \"fath"), "broken.json");
  refused(folder.write("other.json", R"({"schema":"fathom.plan.v1"})"), "fathom.plan.v1");
  EXPECT_FALSE(std::filesystem::exists(folder / "other.html"));
}

TEST(StudyReport, AnUnwritableTargetIsAClearError) {
  const ScratchFolder folder;
  const std::string document = folder.write("d.json", kDocument);
  const CommandResult result =
      run_command({"study", "report", document, "-o", folder / "no/such/page.html"});
  EXPECT_EQ(result.code, 3);
  EXPECT_NE(result.err.find("page.html"), std::string::npos) << result.err;
}

TEST(StudyReport, OfATableFromElsewhere) {
  std::string table = "run_id,n_layers,d_model,nonembedding_params,train_tokens,nll\n";
  for (const int layers : {2, 4, 8}) {
    for (const int width : {64, 128, 256, 512}) {
      const double params = 12.0 * layers * width * width;
      const double loss = 2 + 30 / std::pow(params, 0.25) + 0.01 * layers / width;
      table +=
          fmt::format("{}x{},{},{},{},1000000,{}\n", layers, width, layers, width, params, loss);
    }
  }
  const ScratchFolder folder;
  const std::string file = folder.write("sweep.csv", table);
  const CommandResult refused = run_command({"study", "report", file});
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.err.find("--column loss=NAME"), std::string::npos) << refused.err;
  EXPECT_EQ(run_command({"study", "report", file, "--column", "nll"}).code, 2);
  EXPECT_EQ(run_command({"study", "report", folder.path(), "--column", "loss=nll"}).code, 2);

  const CommandResult result = run_command({"study", "report", file, "--column", "loss=nll"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, (folder / "sweep.html").string() + "\n");
  EXPECT_NE(file_bytes(folder / "sweep.html").find("\"id\":\"8x512\""), std::string::npos);
}

}  // namespace
}  // namespace fathom
