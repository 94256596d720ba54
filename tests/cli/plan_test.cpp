#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "run_command.h"
#include "scratch_folder.h"
#include "shape/hf_config.h"
#include "shape/parameters.h"
#include "study/study_spec.h"
#include "train/run_spec.h"

namespace fathom {
namespace {

nlohmann::json json_of(std::vector<std::string> arguments) {
  arguments.push_back("--json");
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}

void expect_refused(const std::vector<std::string>& arguments, int code) {
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.code, code) << result.out;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(result.err.starts_with("fathom: ")) << result.err;
}

TEST(PlanCommand, JsonHasTheFieldsScriptsRelyOn) {
  const auto plan = json_of({"plan", "1T", "--law", "levine2020"});
  EXPECT_NEAR(plan["unrounded"]["layers"].get<double>(), 94.7, 0.1);
  EXPECT_NEAR(plan["unrounded"]["width"].get<double>(), 29800, 300);
  EXPECT_EQ(plan["law"], "levine2020");
  for (const char* key : {"layers", "width", "heads", "params"}) {
    EXPECT_TRUE(plan["recommendation"][key].is_number_integer()) << key;
  }
  ASSERT_EQ(plan["band"]["layers"].size(), 2u);
  EXPECT_LT(plan["band"]["layers"][0].get<int>(), plan["band"]["layers"][1].get<int>());
  for (const auto& law : plan["laws"]) {
    EXPECT_TRUE(law["name"].is_string());
    EXPECT_GT(law["layers"].get<double>(), 0);
    EXPECT_GT(law["width"].get<double>(), 0);
  }
}

TEST(PlanCommand, FirstScreenFitsEightyColumnsAndThirtyLines) {
  for (const char* size : {"10M", "125M", "1.3B", "7B"}) {
    const std::string text = run_command({"plan", size}).out;
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 30) << text;
    for (const std::string& line : split(text, '\n')) EXPECT_LE(display_width(line), 80u) << line;
    EXPECT_NE(text.find("\n  Take "), std::string::npos);
    EXPECT_NE(text.find("are as good"), std::string::npos);
  }
}

/// The command that the first screen names counts the very shape that it planned.
TEST(PlanCommand, NextCountsTheSameModel) {
  for (const char* size : {"30M", "1.3B", "70B"}) {
    const std::string text = run_command({"plan", size, "--kv-group", "2"}).out;
    const std::string command = text.substr(text.find("fathom shape ") + 7);
    std::vector<std::string> arguments = split(command.substr(0, command.find('\n')), ' ');
    const auto plan = json_of({"plan", size, "--kv-group", "2"});
    const auto counted = json_of(arguments);
    EXPECT_EQ(counted["parameters"]["total"], plan["recommendation"]["parameters"]["total"])
        << size;
  }
}

TEST(PlanCommand, VerdictIsInTheJson) {
  const auto plan = json_of({"plan", "125M"});
  EXPECT_EQ(plan["law"], "consensus");
  EXPECT_EQ(plan["verdict"]["evidence"], "fitted");
  EXPECT_EQ(plan["verdict"]["equals_evidence"], "extrapolated");
  EXPECT_EQ(plan["verdict"]["equals"].size(), 2u);
  double votes = 0;
  for (const auto& law : plan["laws"]) votes += law["vote"].get<double>();
  EXPECT_NEAR(votes, 1, 1e-12);
}

TEST(PlanCommand, LongTextNamesTheBandTheLawsAndTheNeighbours) {
  const std::string text = run_command({"plan", "1.3B", "--long"}).out;
  for (const char* part : {"layers", "within 0.5 %", "Levine 2020", "Gemstones 2025", "Liu 2026",
                           "Published neighbours", "decode-latency", "proved", "fitted"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

TEST(PlanCommand, AsciiTerminalGetsAsciiOnly) {
  std::ostringstream out;
  std::ostringstream err;
  Terminal terminal;
  terminal.unicode = false;
  Session session{out, err, terminal};
  EXPECT_EQ(run_command_line({"plan", "1.3B"}, session), 0);
  for (const char c : out.str()) ASSERT_LT(static_cast<unsigned char>(c), 128) << out.str();
}

TEST(PlanCommand, NonsenseGetsOneLineAndTheRightCode) {
  expect_refused({"plan", "-3B"}, 2);
  expect_refused({"plan", "1.3Q"}, 2);
  expect_refused({"plan"}, 2);
  expect_refused({"plan", "1B", "--flops", "1e20"}, 2);
  expect_refused({"plan", "1B", "--hardware", "h20x"}, 2);
  expect_refused({"plan", "1B", "--hardware", "missing.toml"}, 3);
  expect_refused({"plan", "1B", "--law", "levin2020"}, 2);
  expect_refused({"plan", "1B", "--objective", "speed"}, 2);
  expect_refused({"plan", "1B", "--objective", "accuracy"}, 2);
  expect_refused({"plan", "1M", "--total"}, 2);
  expect_refused({"plan", "1B", "--tokens", "1e308"}, 2);
  expect_refused({"plan", "1B", "--tokens", "1e-300"}, 2);
  expect_refused({"plan", "1B", "--tokens-per-parameter", "1e300"}, 2);
  expect_refused({"plan", "1B", "--gpus", "9223372036854775807"}, 2);
  expect_refused({"plan", "1B", "--tolerance", "3"}, 2);
  expect_refused({"plan", "1B", "--head-size", "-8"}, 2);
  expect_refused({"plan", "1B", "--max-depth", "many"}, 2);
  expect_refused({"plan", "1B", "--emit", "hf-gpt2", "--style", "llama"}, 2);
  expect_refused({"plan", "1B", "-o", "x.json"}, 2);
  expect_refused({"plan", "125M", "--emit", "nanogpt", "-o", "/nonexistent/c.py"}, 3);
}

TEST(PlanCommand, EmittedConfigsReadBackAsTheSameShape) {
  for (const char* format : {"hf-llama", "hf-gpt2"}) {
    const ScratchFolder folder;
    const std::string path = folder / "emitted.json";
    std::vector<std::string> arguments{"plan", "125M", "--emit", format, "-o", path};
    ASSERT_EQ(run_command(arguments).code, 0);
    const Shape shape = read_hf_config(path).shape;
    const auto plan =
        json_of({"plan", "125M", "--style", format == std::string("hf-gpt2") ? "gpt2" : "llama"});
    EXPECT_EQ(count_parameters(shape).total(),
              plan["recommendation"]["parameters"]["total"].get<std::int64_t>());
  }
  EXPECT_NE(run_command({"plan", "125M", "--emit", "megatron"}).out.find("--num-layers 18"),
            std::string::npos);
  EXPECT_NE(run_command({"plan", "125M", "--emit", "nanogpt"}).out.find("n_layer = 18"),
            std::string::npos);
}

/// Every line of the emitted spec is known to `fathom train`, and the model is the one planned.
TEST(PlanCommand, EmittedRunSpecIsTheSameModel) {
  for (const char* style : {"llama", "gpt2"}) {
    const std::vector<std::string> plan{"plan",    "3M",  "--vocab",   "512",
                                        "--style", style, "--context", "128"};
    std::vector<std::string> emit = plan;
    emit.insert(emit.end(), {"--emit", "fathom"});
    const CommandResult result = run_command(emit);
    ASSERT_EQ(result.code, 0) << result.err;
    const train::RunSpec spec = train::read_run_spec_text(result.out, "emitted", {});
    const auto counted = json_of(plan)["recommendation"];
    EXPECT_EQ(spec.model.layers, counted["layers"].get<std::int64_t>());
    EXPECT_EQ(spec.model.resolved_ffn(), counted["ffn"].get<std::int64_t>());
    // The recipe spends the planned tokens, 20 per parameter.
    EXPECT_NEAR(static_cast<double>(spec.total_tokens()) / 60e6, 1, 0.01) << style;
  }
}

TEST(PlanCommand, MegatronCarriesItsParallelSizes) {
  const std::string text = run_command({"plan", "7B", "--tensor-parallel", "4",
                                        "--pipeline-parallel", "2", "--emit", "megatron"})
                               .out;
  EXPECT_NE(text.find("--tensor-model-parallel-size 4"), std::string::npos);
  EXPECT_NE(text.find("--pipeline-model-parallel-size 2"), std::string::npos);
}

TEST(StudyInit, AroundABudgetIsAStudy) {
  const CommandResult result = run_command({"study", "init", "--around", "10M"});
  ASSERT_EQ(result.code, 0) << result.err;
  const study::StudySpec spec = study::read_study_spec_text(result.out, "around", {});
  EXPECT_GE(spec.grid.shapes.size(), 12u);
  std::int64_t largest = 0;
  for (const study::GridShape& shape : spec.grid.shapes) {
    largest = std::max(largest, 12 * shape.layers * shape.width * shape.width);
  }
  EXPECT_NEAR(static_cast<double>(largest) / 10e6, 1, 0.25);
  expect_refused({"study", "init", "quick", "--around", "10M"}, 2);
  expect_refused({"study", "init"}, 2);
}

TEST(PlanCommand, TokensInProportionAreTheSameAsTokens) {
  const auto ratio = json_of({"plan", "1B", "--tokens-per-parameter", "100"});
  EXPECT_EQ(ratio["budget"]["tokens"], 100'000'000'000);
  EXPECT_EQ(ratio["recommendation"], json_of({"plan", "1B", "--tokens", "100B"})["recommendation"]);
  expect_refused({"plan", "1B", "--tokens", "1B", "--tokens-per-parameter", "100"}, 2);
}

TEST(PlanCommand, OptionsOfTheMapGoWithIt) {
  expect_refused({"plan", "1B", "--open"}, 2);
  expect_refused({"plan", "1B", "--overlay", "study"}, 2);
  expect_refused({"plan", "1B", "--html", "map.html", "--emit", "fathom"}, 2);
  expect_refused({"plan", "1B", "--html", "map.html", "-o", "config.json"}, 2);
  expect_refused({"plan", "1B", "--html", "map.html", "--overlay", "/nowhere/at/all"}, 3);
}

TEST(CompareCommand, PutsModelsSideBySide) {
  const auto document =
      json_of({"compare", "Llama-3-8B", "mistralai/Mixtral-8x7B-v0.1", "32x4096"});
  ASSERT_EQ(document["shapes"].size(), 3u);
  EXPECT_EQ(document["shapes"][0]["parameters"]["total"].get<std::int64_t>(), 8'030'261'248);
  EXPECT_EQ(document["shapes"][1]["parameters"]["total"].get<std::int64_t>(), 46'702'792'704);
  EXPECT_TRUE(document["shapes"][1]["consensus"].is_null());  // laws speak of dense models
  EXPECT_GE(document["shapes"][0]["consensus"]["loss_penalty"].get<double>(), 0);
  const std::string text = run_command({"compare", "gpt2", "pythia-160m"}).out;
  for (const char* part : {"GPT-2 small", "pythia-160m", "124,439,808", "Levine 2020"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  expect_refused({"compare", "gpt2"}, 2);
  expect_refused({"compare", "gpt2", "no-such-model"}, 2);
}

TEST(ShapeCommand, JsonCountsGpt3) {
  const auto shape = json_of({"shape", "96x12288", "--heads", "96"});
  EXPECT_EQ(shape["parameters"]["paper_12ld2"].get<std::int64_t>(), 12LL * 96 * 12288 * 12288);
  EXPECT_GT(shape["parameters"]["total"].get<std::int64_t>(),
            shape["parameters"]["non_embedding"].get<std::int64_t>());
  EXPECT_GT(shape["flops"]["train_per_token"].get<double>(), 1e12);
  EXPECT_EQ(shape["kv_bytes_per_token"].get<std::int64_t>(), 2LL * 96 * 12288 * 2);
  const std::string text = run_command({"shape", "96x12288", "--heads", "96"}).out;
  EXPECT_NE(text.find("16 layers deeper than the law"), std::string::npos);
}

TEST(ShapeCommand, BloombergsWidthAppears) {
  const auto shape = json_of({"shape", "BloombergGPT-50B"});
  EXPECT_NEAR(shape["levine"]["transition_width"].get<double>(), 7510, 0.5);
  EXPECT_NE(run_command({"shape", "bloomberggpt"}).out.find("7510"), std::string::npos);
}

TEST(ShapeCommand, NonsenseGetsOneLineAndTheRightCode) {
  const ScratchFolder folder;
  const std::string broken = folder.write("broken.json", "{ \"model_type\": ");
  expect_refused({"shape"}, 2);
  expect_refused({"shape", "12x768", "--heads", "7"}, 2);
  expect_refused({"shape", "12x768", "--heads", "-7"}, 2);
  expect_refused({"shape", broken}, 3);
  expect_refused({"shape", "missing/config.json"}, 3);
  expect_refused({"shape", "no-such-model"}, 2);
  expect_refused({"shape", "T5-base"}, 2);
  expect_refused({"shape", "gpt2", "--heads", "7"}, 2);
  expect_refused({"shape", "12x768", "--conventions", "lama"}, 2);
  EXPECT_EQ(run_command({"shape", "list", "qwen"}).code, 0);
  EXPECT_EQ(json_of({"shape", "list"})["shapes"].size(), 286u);
}

TEST(BoundsCommand, JsonHasTheFieldsScriptsRelyOn) {
  const auto bounds = json_of(
      {"bounds", "--layers", "6", "--width", "1000", "--heads", "16", "--match-depth", "2,3"});
  EXPECT_EQ(bounds["regime"], "depth-efficient");
  EXPECT_NEAR(bounds["log3_lower"].get<double>(), 133.01, 0.01);
  EXPECT_GT(bounds["log3_upper"].get<double>(), bounds["log3_lower"].get<double>());
  EXPECT_NEAR(bounds["log3_rmax"].get<double>(), 1474.7, 0.1);
  EXPECT_NEAR(bounds["match"][0]["width_printed"].get<double>(), 7.3e15, 0.1e15);
  EXPECT_NEAR(bounds["match"][1]["width_multiset"].get<double>(), 1.95e5, 0.01e5);
  EXPECT_EQ(json_of({"bounds", "--layers", "7", "--width", "8"})["printed_upper_below_rmax"], true);
}

}  // namespace
}  // namespace fathom
