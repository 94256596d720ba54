// Where shapes come from: requests, the catalogue, Hugging Face configs; and rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "scratch_folder.h"
#include "shape/catalogue.h"
#include "shape/hf_config.h"
#include "shape/parameters.h"
#include "shape/rounding.h"

namespace fathom {
namespace {

TEST(Request, DefaultsFollowPractice) {
  ShapeRequest request = parse_depth_by_width("96x12288");
  const Shape shape = complete(request);
  EXPECT_EQ(shape.heads, 96);
  EXPECT_EQ(shape.ffn, 4 * 12288);
  EXPECT_EQ(usual_head_size(768), 64);
  EXPECT_EQ(usual_head_size(4096), 128);
  EXPECT_EQ(usual_head_size(96), 32);
}

TEST(Request, ImpossibleShapesAreRefused) {
  ShapeRequest request = parse_depth_by_width("12x768");
  request.heads = 7;
  EXPECT_THROW(complete(request), ConfigError);
  request.head_size = 64;  // free head size makes it possible
  EXPECT_NO_THROW(complete(request));
  request.kv_heads = 3;
  EXPECT_THROW(complete(request), ConfigError);
  EXPECT_THROW(parse_depth_by_width("12by768"), ConfigError);
  EXPECT_THROW(complete(parse_depth_by_width("0x768")), ConfigError);
  EXPECT_THROW(complete(parse_depth_by_width("99999x9999999")), ConfigError);
}

TEST(Catalogue, FindsByNameAliasAndUniquePart) {
  EXPECT_EQ(find_published("gpt3").shape.layers, 96);
  EXPECT_EQ(find_published("llama 2 7B").name, "Llama-2-7b");
  EXPECT_EQ(find_published("smollm3").name, "SmolLM3-3B");
  EXPECT_THROW(find_published("llama"), ConfigError);  // many
  EXPECT_THROW(find_published("lama-2-7b-x"), ConfigError);
  EXPECT_FALSE(search_catalogue("qwen decoder").empty());
  EXPECT_TRUE(search_catalogue("no such thing").empty());
}

TEST(Catalogue, EveryNameIsItself) {
  std::size_t names = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    const PublishedMatch match = match_published(entry.name);
    EXPECT_EQ(match.entry, &entry) << entry.name << " gave " << match.entry->name;
    EXPECT_TRUE(match.exact) << entry.name;
    if (!entry.alias.empty()) {
      EXPECT_EQ(match_published(entry.alias).entry, &entry) << entry.alias;
    }
    ++names;
  }
  EXPECT_EQ(names, 286u);
}

TEST(Catalogue, PointsHubIdsAndGuesses) {
  EXPECT_EQ(find_published("OPT-13B").name, "OPT-13B");
  EXPECT_EQ(find_published("opt-1.3b").name, "OPT-1.3B");
  EXPECT_EQ(find_published("mistralai/Mistral-7B-v0.1").name, "Mistral-7B-v0.1");
  EXPECT_EQ(find_published("meta-llama/Meta-Llama-3-8B").name, "Llama-3-8B");
  EXPECT_EQ(find_published("EleutherAI/pythia-1.4b").name, "pythia-1.4b");
  EXPECT_TRUE(match_published("mistralai/Mistral-7B-v0.1").exact);
  EXPECT_FALSE(match_published("opt 2 7b").exact);  // taken as OPT-2.7B, and said so
  EXPECT_FALSE(match_published("smollm3").exact);
}

TEST(Catalogue, UnknownContextsAreSaidToBeUnknown) {
  const Shape& gemma = find_published("Gemma-4-31B").shape;
  EXPECT_FALSE(gemma.context_known);
  EXPECT_EQ(gemma.context, kDefaultContext);
  EXPECT_TRUE(find_published("gpt2").shape.context_known);
}

TEST(Catalogue, NeighboursAreNear) {
  const auto near = nearest_published(6.4e9, 32, 3);
  ASSERT_EQ(near.size(), 3u);
  for (const CatalogueEntry* entry : near) {
    const double size = static_cast<double>(count_parameters(entry->shape).non_embedding());
    EXPECT_NEAR(std::log(size / 6.4e9), 0, 0.2) << entry->name;
  }
}

class HfConfig : public testing::Test {
 protected:
  std::string write(const std::string& text) { return folder_.write("config.json", text); }
  ScratchFolder folder_;
};

TEST_F(HfConfig, ReadsLlamaWithGroupedHeads) {
  const HfModel model = read_hf_config(write(
      R"({"model_type":"llama","hidden_size":4096,"intermediate_size":14336,
          "num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":8,
          "vocab_size":128256,"max_position_embeddings":8192,"tie_word_embeddings":false})"));
  EXPECT_EQ(count_parameters(model.shape).total(), 8'030'261'248);
}

TEST_F(HfConfig, ReadsGpt2WithDefaults) {
  const HfModel model = read_hf_config(write(
      R"({"model_type":"gpt2","n_embd":768,"n_head":12,"n_layer":12,"n_positions":1024,
          "vocab_size":50257})"));
  EXPECT_EQ(count_parameters(model.shape).total(), 124'439'808);
}

TEST_F(HfConfig, BrokenFilesGetOneLineAndTheRightCode) {
  const auto code_of = [&](const std::string& text) {
    try {
      read_hf_config(write(text));
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.exit_code();
    }
    return 0;
  };
  EXPECT_EQ(code_of("{ broken"), 3);
  EXPECT_EQ(code_of("[]"), 3);
  EXPECT_EQ(code_of("{}"), 3);
  EXPECT_EQ(code_of(R"({"model_type":"llama"})"), 3);
  EXPECT_EQ(code_of(R"({"model_type":"lama","hidden_size":8})"), 2);
  EXPECT_EQ(code_of(R"({"model_type":"gpt2","n_embd":"x","n_head":1,"n_layer":1,"vocab_size":5})"),
            3);
  EXPECT_EQ(code_of(R"({"model_type":"gpt2","n_embd":8,"n_head":-1,"n_layer":1,"vocab_size":5})"),
            3);
  EXPECT_EQ(code_of(R"({"model_type":"gpt2","n_embd":8,"n_head":3,"n_layer":1,"vocab_size":5})"),
            3);
  EXPECT_EQ(code_of(R"({"model_type":"qwen3_moe","num_experts":128})"), 3);
  EXPECT_THROW(read_hf_config("/nonexistent/config.json"), DataError);
}

RoundingTarget target_for(std::int64_t layers, double width) {
  RoundingTarget target;
  target.layers = layers;
  target.width = width;
  target.budget = 12 * static_cast<double>(layers) * width * width;
  target.count = [](const Shape& s) {
    return static_cast<double>(count_parameters(s).block_matrices());
  };
  return target;
}

TEST(Rounding, DepthsDivideOverStages) {
  EXPECT_EQ(
      friendly_depths(10, 80, {}),
      (std::vector<std::int64_t>{10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80}));
  RoundingRules stages;
  stages.pipeline_parallel = 12;
  stages.max_layers = 72;
  EXPECT_EQ(friendly_depths(1, 1000, stages), (std::vector<std::int64_t>{12, 24, 36, 48, 60, 72}));
  EXPECT_EQ(friendly_depths(40, 46, {}, true), (std::vector<std::int64_t>{40, 42, 44, 46}));
}

TEST(Rounding, WidthsHaveEightStepsPerOctave) {
  EXPECT_EQ(width_step(100), 16);
  EXPECT_EQ(width_step(300), 32);
  EXPECT_EQ(width_step(1000), 64);
  EXPECT_EQ(width_step(1024), 128);
  EXPECT_EQ(width_step(2048), 256);
  EXPECT_EQ(width_step(20000), 2048);
}

TEST(Rounding, StaysNearBudgetAndKeepsEveryRule) {
  RoundingRules rules;
  rules.tensor_parallel = 8;
  ShapeRequest gated;
  gated.gated = true;
  const RoundingTarget target = target_for(40, 1548);
  const auto shape = shape_at_depth(target, gated, rules);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->layers, 40);
  EXPECT_EQ(shape->heads % 8, 0);
  EXPECT_GE(shape->head_size, 64);
  EXPECT_EQ(shape->ffn % 8, 0);
  EXPECT_EQ(shape->width % 128, 0);
  EXPECT_NEAR(target.count(*shape) / target.budget, 1, 0.02);
}

TEST(Rounding, TheFeedForwardTakesUpTheRestUnlessItsRatioWasAskedFor) {
  // 1664 (26 heads) and 1536 would miss 1600 by 8 %; the feed-forward makes up for it.
  const RoundingTarget target = target_for(32, 1600);
  ShapeRequest base;
  base.gated = true;
  const auto trimmed = shape_at_depth(target, base, {});
  ASSERT_TRUE(trimmed);
  EXPECT_NEAR(target.count(*trimmed) / target.budget, 1, 0.01);
  EXPECT_NEAR(static_cast<double>(trimmed->ffn) / static_cast<double>(trimmed->width), 8.0 / 3,
              0.2 * 8 / 3);
  base.ffn_ratio = 4;
  EXPECT_FALSE(feed_forward_is_free(base));
  const auto fixed = shape_at_depth(target_for(32, 1600), base, {});
  EXPECT_EQ(fixed->ffn, 4 * fixed->width);
}

TEST(Rounding, ImpossibleRulesGiveNothingAndOddOnesAreKept) {
  RoundingRules odd;
  odd.width_multiple = 64;
  odd.head_size = 63;
  odd.tensor_parallel = 8;
  const auto shape = shape_at_depth(target_for(24, 4 * 64 * 63 * 8), ShapeRequest{}, odd);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->head_size, 63);
  EXPECT_EQ(shape->heads % 8, 0);
  EXPECT_EQ(round_vocab(50257, 1), 50304);
  EXPECT_EQ(round_vocab(50257, 8), 50688);
}

}  // namespace
}  // namespace fathom
