// Files of llama2.c: seven whole numbers and the weights in a fixed order.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "pretrained/checkpoint.h"
#include "scratch_folder.h"

namespace fathom::pretrained {
namespace {

/// width, ffn, layers, heads, key heads, vocabulary, context
using Sizes = std::array<std::int32_t, 7>;
constexpr Sizes kSmall{4, 8, 1, 2, 2, 6, 3};
// 6 * 4 of the table, 2 * 4 + 4 * 16 + 3 * 32 of the layer, 4 of the norm, 3 * 2 of the angles
constexpr std::size_t kNumbers = 24 + 168 + 4 + 6;

std::string model(const Sizes& sizes, std::size_t numbers) {
  std::string bytes(sizeof sizes, '\0');
  std::memcpy(bytes.data(), sizes.data(), sizeof sizes);
  for (std::size_t i = 0; i < numbers; ++i) {
    const float value = static_cast<float>(i);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

TEST(Llama2c, TensorsStandInTheOrderOfTheFile) {
  const ScratchFolder folder;
  const Checkpoint checkpoint = open_llama2c(folder.write("model.bin", model(kSmall, kNumbers)));
  EXPECT_EQ(checkpoint.tensors->names().size(), 11u);
  EXPECT_EQ(checkpoint.config->at("num_hidden_layers"), 1);
  std::vector<float> norm(4);
  checkpoint.tensors->read("model.norm.weight", norm);
  EXPECT_EQ(norm.front(), 24 + 168);
  EXPECT_EQ(*checkpoint.tensors->find("model.layers.0.mlp.gate_proj.weight"), (TensorShape{8, 4}));
  EXPECT_NE(checkpoint.tokenizer_note.find("no such file"), std::string::npos);
}

// Nothing is built from a header that promises thousands of layers before the size was looked at.
TEST(Llama2c, AFileOfAnotherSizeIsRefused) {
  const ScratchFolder folder;
  const auto message = [&](const std::string& bytes) {
    return error_of<DataError>([&] { open_llama2c(folder.write("model.bin", bytes)); });
  };
  EXPECT_NE(message(model(kSmall, kNumbers - 1)).find("832 bytes where a llama2.c model of these"),
            std::string::npos);
  Sizes deep = kSmall;
  deep[2] = 10000;
  EXPECT_NE(message(model(deep, kNumbers)).find("has 6720164"), std::string::npos);
  deep[2] = 10001;
  EXPECT_NE(message(model(deep, kNumbers)).find("not a llama2.c model"), std::string::npos);
}

}  // namespace
}  // namespace fathom::pretrained
