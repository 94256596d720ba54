#include "shape/find_shape.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "scratch_folder.h"

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

TEST(FindShape, RefusesWhatCannotBeMeant) {
  ShapeRequest heads;
  heads.heads = 8;
  EXPECT_THROW(find_shape("gpt3", heads), ConfigError);
  heads.heads = -1;
  EXPECT_THROW(find_shape("2x8", heads), ConfigError);
  EXPECT_THROW(find_shape("DeepSeek-V3", {}), ConfigError);  // a mixture of experts
  EXPECT_THROW(find_shape("no such model", {}), ConfigError);
}

}  // namespace
}  // namespace fathom
