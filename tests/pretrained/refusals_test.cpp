// Folders that cannot be read say so in one line that names the file, the tensor or the key.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/safetensors.h"
#include "pretrained/forward.h"
#include "pretrained/planted_folder.h"
#include "scratch_folder.h"

namespace fathom::pretrained {
namespace {

namespace fs = std::filesystem;

/// What reading the whole folder says; empty: nothing is wrong.
std::string complaint(const fs::path& folder) {
  try {
    Weights weights(open_checkpoint(folder), 1u << 30);
    for (std::int64_t l = 0; l < weights.layout().depth(); ++l) weights.layer(l);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_says(const std::string& said, const std::string& wanted) {
  EXPECT_NE(said.find(wanted), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
}

TEST(Refusals, AMissingShardIsNamed) {
  const ScratchFolder folder;
  write_planted(random_llama(), folder.path());
  EXPECT_EQ(complaint(folder.path()), "");
  fs::rename(folder / kModelTensors, folder / "model-00001-of-00002.safetensors");
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors",
                   "lm_head.weight": "model-00002-of-00002.safetensors"}})");
  expect_says(complaint(folder.path()), "model-00002-of-00002.safetensors");
}

TEST(Refusals, AShapeThatDoesNotFitTheConfigIsNamed) {
  const ScratchFolder folder;
  PlantedModel model = random_llama();
  model.config["intermediate_size"] = 40;
  write_planted(model, folder.path());
  expect_says(complaint(folder.path()),
              "model.layers.0.mlp.gate_proj.weight has shape [48, 32], the config asks for "
              "[40, 32]");
}

TEST(Refusals, WeightsThatAreNotFiniteAreNamed) {
  const ScratchFolder folder;
  PlantedModel model = random_llama();
  model.layer(2, "mlp.up_proj")[3] = NAN;
  write_planted(model, folder.path());
  expect_says(complaint(folder.path()),
              "model.layers.2.mlp.up_proj.weight holds a number that is not finite");
}

TEST(Refusals, PicklesAreNotOpened) {
  const ScratchFolder folder;
  write_planted(random_llama(), folder.path());
  fs::rename(folder / kModelTensors, folder / "pytorch_model.bin");
  expect_says(complaint(folder.path()), "pytorch_model.bin: a pickle file");
}

TEST(Refusals, IdsBeyondTheVocabularyAreNamed) {
  const PlantedModel model = random_llama();
  Weights weights = model.weights();
  const Forward forward(weights, 3);
  std::vector<float> h(3 * 32), losses(3);
  Scratch scratch;
  const auto says = [](const auto& call) {
    try {
      call();
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::vector<data::TokenId> good{0, 28, 1}, high{0, 29, 1}, low{0, -1, 1};
  EXPECT_EQ(says([&] { forward.embed(good, h.data()); }), "");
  expect_says(says([&] { forward.embed(high, h.data()); }),
              "token 29 is outside the model's vocabulary of 29");
  expect_says(says([&] { forward.embed(low, h.data()); }), "token -1");
  EXPECT_EQ(says([&] { forward.losses(h.data(), low, scratch, losses.data()); }), "");
  expect_says(says([&] { forward.losses(h.data(), high, scratch, losses.data()); }),
              "token 29 is outside the model's vocabulary of 29");
}

TEST(Refusals, KeysThatMayChangeTheFunctionAreNamed) {
  const auto says = [](const char* key, const nlohmann::json& value) {
    PlantedModel model = random_llama();
    model.config[key] = value;
    try {
      model.weights();
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const char* key : {"residual_multiplier", "num_local_experts", "use_parallel_residual",
                          "quantization_config", "attn_logit_softcapping"}) {
    expect_says(says(key, {{"any", 1}}), fmt::format("'{}' is not known", key));
  }
  // What says nothing, and what is about training or generation, is let through.
  EXPECT_EQ(says("residual_multiplier", nullptr), "");
  EXPECT_EQ(says("use_qk_norm", false), "");
  EXPECT_EQ(says("attention_dropout", 0.1), "");
  EXPECT_EQ(says("bos_token_id", 1), "");
  EXPECT_EQ(says("torch_dtype", "bfloat16"), "");
  expect_says(says("rope_scaling", {{"rope_type", "linear"}, {"factor", 2}, {"mrope_section", 1}}),
              "'mrope_section' is not known");
}

TEST(Refusals, SilentConfigsHaveTheDefaultsOfTheirClass) {
  nlohmann::json config{{"hidden_size", 512},
                        {"num_hidden_layers", 12},
                        {"intermediate_size", 1024},
                        {"model_type", "gemma3_text"}};
  const Layout gemma = read_layout(find_family("gemma3_text", "x"), config, "x");
  EXPECT_EQ(gemma.heads, 8);
  EXPECT_EQ(gemma.key_heads, 4);
  EXPECT_EQ(gemma.head_size, 256);
  EXPECT_EQ(gemma.rotary.at(0).theta, 1e6);
  EXPECT_EQ(gemma.rotary.at(1).theta, 1e4);
  EXPECT_EQ(gemma.layers[5].window, 0);
  EXPECT_EQ(gemma.layers[4].window, 4096);
  config["num_attention_heads"] = 8;
  config["vocab_size"] = 100;
  const Layout mistral = read_layout(find_family("mistral", "x"), config, "x");
  EXPECT_EQ(mistral.layers[0].window, 4096);
  config["sliding_window"] = nullptr;  // null is said, not silent
  EXPECT_EQ(read_layout(find_family("mistral", "x"), config, "x").layers[0].window, 0);
}

}  // namespace
}  // namespace fathom::pretrained
