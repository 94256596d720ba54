// fathom probe as a user meets it: promised JSON fields, one-line refusals, pruned folders.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run_command.h"
#include "core/json_text.h"
#include "core/safetensors.h"
#include "engine/device.h"
#include "pretrained/planted_model.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

class ProbeCommand : public testing::Test {
 protected:
  ProbeCommand() {
    const pretrained::PlantedModel planted = pretrained::random_llama();
    std::filesystem::create_directories(folder_ / "model");
    std::vector<TensorSpec> specs;
    for (const auto& [name, tensor] : planted.tensors) {
      specs.push_back({name, TensorType::f32, tensor.shape});
    }
    SafetensorsWriter writer(folder_ / "model/model.safetensors", specs);
    for (const auto& [name, tensor] : planted.tensors) {
      writer.write(name, std::as_bytes(std::span(tensor.values)));
    }
    writer.commit();
    folder_.write("model/config.json", planted.config.dump());
    std::string ids;
    for (std::uint64_t w = 0; w < 4; ++w) {
      for (const auto id : pretrained::planted_ids(16, 29, w)) ids += std::to_string(id) + " ";
      ids += "\n";
    }
    folder_.write("ids.txt", ids);
  }
  std::string model() const { return (folder_ / "model").string(); }
  std::string ids() const { return (folder_ / "ids.txt").string(); }
  CommandResult probe(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"probe", model()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_command(arguments);
  }

  ScratchFolder folder_;
};

TEST_F(ProbeCommand, ExportWithoutAFormatKeepsTheLayout) {
  const std::string copy = (folder_ / "copy").string();
  const CommandResult written = run_command({"export", model(), "-o", copy});
  ASSERT_EQ(written.code, 0) << written.err;
  const auto loss = [&](const std::string& from) {
    const CommandResult result =
        run_command({"probe", from, "--ids", ids(), "--drop", "1", "--json"});
    return nlohmann::json::parse(result.out)["loss"].get<double>();
  };
  EXPECT_EQ(loss(copy), loss(model()));
  const CommandResult same = run_command({"export", model(), "-o", model()});
  EXPECT_EQ(same.code, 2);
  EXPECT_NE(same.err.find("is the model itself; give another folder"), std::string::npos);
  folder_.write("run/spec.toml", "");
  const CommandResult run = run_command({"export", (folder_ / "run").string(), "-o", copy});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("choose a layout with --format: hf-gpt2 or hf-llama"), std::string::npos)
      << run.err;
}

TEST_F(ProbeCommand, JsonHasThePromisedFields) {
  const std::string page = (folder_ / "page.html").string();
  const CommandResult result = probe({"--ids", ids(), "--json", "--report", page});
  ASSERT_EQ(result.code, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], "fathom.probe.v1");
  ASSERT_EQ(json["layers"].size(), 4u);
  for (const char* key :
       {"layer", "bi", "removal", "removal_error", "attention_removal", "ffn_removal", "class"}) {
    EXPECT_TRUE(json["layers"][0].contains(key)) << key;
  }
  EXPECT_EQ(json["tokens"], 4 * 15);
  EXPECT_EQ(json["greedy"][0]["kept"], 4);
  EXPECT_TRUE(json["greedy"][0]["loss"].is_number());
  EXPECT_EQ(json["heads"].size(), 16u);
  EXPECT_TRUE(json["heads"][0]["scores"].contains("induction"));
  EXPECT_FALSE(json["verdict"].empty());
  EXPECT_EQ(json["shape"]["layers"], 4);
  EXPECT_EQ(json["shape"]["width"], 32);
  EXPECT_TRUE(json["shape"].contains("law_layers"));
  EXPECT_TRUE(json["shape"].contains("band"));
  EXPECT_GT(std::filesystem::file_size(page), 10000u);
}

TEST_F(ProbeCommand, TwoModelsStandSideBySide) {
  const CommandResult earlier = probe({"--ids", ids(), "--json"});
  folder_.write("earlier.json", earlier.out);
  const std::string file = (folder_ / "earlier.json").string();
  // A model that is measured now beside one that was measured before.
  const CommandResult both =
      run_command({"probe", "--compare", model(), file, "--ids", ids(), "--json"});
  ASSERT_EQ(both.code, 0) << both.err;
  const nlohmann::json json = nlohmann::json::parse(both.out);
  EXPECT_EQ(json["schema"], "fathom.probe_compare.v1");
  EXPECT_EQ(json["a"]["layers"], json["b"]["layers"]);
  EXPECT_FALSE(json["sentences"].empty());
  const std::string page = (folder_ / "page.html").string();
  const CommandResult text = run_command({"probe", "--compare", file, file, "--report", page});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("B removal"), std::string::npos) << text.out;
  EXPECT_GT(std::filesystem::file_size(page), 10000u);
  EXPECT_EQ(run_command({"probe", "--compare", file}).code, 2);
  EXPECT_EQ(run_command({"probe"}).code, 2);
}

TEST_F(ProbeCommand, WithoutAGpuCudaIsRefused) {
  if (engine::find_cuda_device()) GTEST_SKIP() << "this machine has a GPU";
  const CommandResult result = probe({"--ids", ids(), "--device", "cuda"});
  EXPECT_EQ(result.code, 4);
  EXPECT_NE(result.err.find("no CUDA device"), std::string::npos) << result.err;
}

TEST_F(ProbeCommand, RefusalsAreOneLineWithTheirCode) {
  const auto refused = [&](std::vector<std::string> more, int code, const std::string& part) {
    const CommandResult result = probe(std::move(more));
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  refused({}, 3, "no tokenizer for this model");
  refused({"--ids", (folder_ / "absent.txt").string()}, 3, "absent.txt");
  folder_.write("words.txt", "1 2 three\n");
  refused({"--ids", (folder_ / "words.txt").string()}, 3, "line 1");
  folder_.write("large.txt", "1 2 400\n");
  refused({"--ids", (folder_ / "large.txt").string()}, 3, "token 400 is outside");
  folder_.write("empty.txt", "\n");
  refused({"--ids", (folder_ / "empty.txt").string()}, 3, "holds no ids");
  refused({"--ids", ids(), "--drop", "7"}, 2, "'7' is not a layer from 0 to 3");
  refused({"--ids", ids(), "--write", "x"}, 2, "--write needs --drop");
  refused({"--ids", ids(), "--window", "1000"}, 2, "--window 1000");
  const CommandResult missing = run_command({"probe", (folder_ / "none").string()});
  EXPECT_EQ(missing.code, 3);
  folder_.write("old/config.json", R"({"model_type":"llama"})");
  folder_.write("old/pytorch_model.bin", "x");
  const CommandResult pickle = run_command({"probe", (folder_ / "old").string()});
  EXPECT_EQ(pickle.code, 3);
  EXPECT_NE(pickle.err.find("pickle"), std::string::npos);
}

TEST_F(ProbeCommand, ADroppedLayerIsWrittenWithThePredictedLoss) {
  const std::string pruned = (folder_ / "pruned").string();
  const CommandResult result =
      probe({"--ids", ids(), "--drop", "1,2", "--write", pruned, "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_DOUBLE_EQ(json["reloaded_loss"], json["loss_without"]);
  EXPECT_EQ(read_json_file(pruned + "/config.json")["num_hidden_layers"], 2);
}

}  // namespace
}  // namespace fathom
