#include "shape/find_shape.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "scratch_folder.h"
#include "shape/parameters.h"

namespace fathom {
namespace {

TEST(FindShape, TakesNumbersNamesAndConfigs) {
  ShapeRequest heads;
  heads.heads = 96;
  const NamedShape numbers = find_shape("96x12288", heads);
  EXPECT_EQ(numbers.name, "96×12288");
  EXPECT_EQ(numbers.shape.head_size, 128);
  EXPECT_EQ(numbers.published, nullptr);

  ShapeRequest longer;
  longer.context = 4096;
  const NamedShape published = find_shape("gpt3", longer);
  EXPECT_EQ(published.shape.layers, 96);
  EXPECT_EQ(published.shape.context, 4096);
  ASSERT_NE(published.published, nullptr);
  EXPECT_EQ(published.published->shape.context, 2048);

  const ScratchFolder folder;
  const auto file = folder.write("config.json",
                                 R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2,
                                     "vocab_size": 10, "n_positions": 16})");
  const NamedShape config = find_shape(file.string(), {});
  EXPECT_EQ(config.shape.width, 8);
  EXPECT_EQ(config.name, file.string() + " (gpt2)");
}

TEST(FindShape, WhatIfChangesAPublishedModel) {
  ShapeRequest asked;
  asked.vocab = 32000;
  const NamedShape changed = find_shape("Llama-3-8B", asked);
  EXPECT_EQ(changed.name, "Llama-3-8B, vocabulary 32,000");
  // Two matrices of 4096 columns lose 128,256 - 32,000 rows.
  EXPECT_EQ(count_parameters(changed.shape).total(), 8'030'261'248 - 2LL * (128256 - 32000) * 4096);
  asked = {};
  asked.heads = 16;
  const NamedShape heads = find_shape("gpt2", asked);
  EXPECT_EQ(heads.shape.head_size, 48);
  EXPECT_EQ(heads.shape.kv_heads, 16);
  EXPECT_EQ(count_parameters(heads.shape).total(), 124'439'808);
}

TEST(FindShape, GuessedNamesAreSaid) {
  EXPECT_EQ(find_shape("OPT-13B", {}).note, "");
  EXPECT_EQ(find_shape("smollm3", {}).note, "'smollm3' taken as SmolLM3-3B");
}

/// The command names the very shape.
TEST(FindShape, ShapeCommandNamesEverything) {
  ShapeRequest request = parse_depth_by_width("10x512");
  request.heads = 8;
  request.kv_heads = 2;
  request.head_size = 32;
  request.ffn = 1000;
  request.gated = true;
  request.vocab = 999;
  request.context = 64;
  request.tied = false;
  EXPECT_EQ(shape_command(complete(request)),
            "fathom shape 10x512 --heads 8 --kv-heads 2 --head-size 32 --ffn 1000 --gated --vocab "
            "999 --context 64 --untied");
}

TEST(FindShape, RefusesWhatCannotBeMeant) {
  ShapeRequest heads;
  heads.heads = 7;
  EXPECT_THROW(find_shape("gpt3", heads), ConfigError);
  heads.heads = -1;
  EXPECT_THROW(find_shape("2x8", heads), ConfigError);
  EXPECT_THROW(find_shape("gpt3", heads), ConfigError);
  EXPECT_THROW(find_shape("T5-base", {}), ConfigError);  // an encoder-decoder
  EXPECT_THROW(find_shape("no such model", {}), ConfigError);
}

}  // namespace
}  // namespace fathom
