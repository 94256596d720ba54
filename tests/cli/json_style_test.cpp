// One style of JSON for every command: docs/json.md.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "run_command.h"
#include "scratch_folder.h"
#include "study/planted_study.h"

namespace fathom {
namespace {

using Json = nlohmann::ordered_json;

void expect_plain_keys(const Json& value, const std::string& place) {
  static const std::regex plain("[a-z][a-z0-9_]*");
  static const std::regex terms("[wLPT]");  // of a joint law: data, not style
  for (const auto& [key, inner] : value.items()) {
    if (value.is_object()) {
      EXPECT_TRUE(std::regex_match(key, plain) || std::regex_match(key, terms))
          << place << "." << key;
    }
    if (inner.is_structured()) expect_plain_keys(inner, place + "." + key);
  }
}

TEST(JsonStyle, SchemaFirstThenVersionAndPlainKeys) {
  const ScratchFolder folder;
  const std::string runs = folder.write("runs.csv",
                                        "layers,width,params,tokens,loss\n"
                                        "2,64,98304,2000000,4.1\n4,64,196608,4000000,3.9\n");
  const std::string corpus = folder.write("c.txt", "a\n\nb\n\nc\n");
  const std::string tokens = folder / "tokens";
  const study::PlantedStudy planted;
  const std::string study = planted.folder.path();
  struct Case {
    std::string name;
    std::vector<std::string> arguments;
  };
  const std::vector<Case> cases{
      {"plan", {"plan", "1B"}},
      {"shape", {"shape", "Llama-3-8B"}},
      {"shape_list", {"shape", "list", "llama"}},
      {"compare", {"compare", "Llama-3-8B", "Qwen3-8B"}},
      {"bounds", {"bounds", "--layers", "6", "--width", "1000", "--heads", "16"}},
      {"rank", {"rank", "--layers", "2", "--width", "2"}},
      {"data_prepare",
       {"data", "prepare", corpus, "-o", tokens, "--tokenizer", "bytes", "--valid", "0", "--test",
        "0"}},
      {"data_info", {"data", "info", tokens}},
      {"data_sample", {"data", "sample", tokens, "--tokens", "4"}},
      {"rank_table",
       {"rank", "table", "--layers", "1", "--widths", "2", "--records", folder / "ranks.jsonl"}},
      {"study_fit", {"study", "fit", runs}},
      {"study_status", {"study", "status", study}},
      {"study_runs", {"study", "list", study}},
      {"study_show", {"study", "show", study, "run101"}},
      {"study_reindex", {"study", "reindex", study}},
      {"study_report", {"study", "report", study, "-o", folder / "report.html"}},
      {"lab_show", {"lab", "show", "rank-collapse"}},
      {"study_plan", {"study", "plan", "--preset", "quick", "--no-timing"}},
      {"lab_list", {"lab", "list"}},
  };
  for (const Case& entry : cases) {
    std::vector<std::string> arguments = entry.arguments;
    arguments.push_back("--json");
    const CommandResult result = run_command(arguments);
    ASSERT_EQ(result.code, 0) << entry.name << ": " << result.err;
    const Json document = Json::parse(result.out);
    EXPECT_EQ(document.begin().key(), "schema");
    EXPECT_EQ(document["schema"], "fathom." + entry.name + ".v1");
    EXPECT_EQ(std::next(document.begin()).key(), "fathom");
    expect_plain_keys(document, entry.name);
  }
}

}  // namespace
}  // namespace fathom
