#include "shape/parameters.h"

#include <gtest/gtest.h>

#include "shape/catalogue.h"

namespace fathom {
namespace {

TEST(Parameters, HandCountOfATinyGpt2) {
  // L=2, D=4, H=2, F=16, V=10, T=8, tied, all biases, LayerNorm.
  ShapeRequest request;
  request.layers = 2;
  request.width = 4;
  request.heads = 2;
  request.vocab = 10;
  request.context = 8;
  const ParameterCount count = count_parameters(complete(request));
  EXPECT_EQ(count.embedding, 40);
  EXPECT_EQ(count.positions, 32);
  EXPECT_EQ(count.attention_matrices, 2 * 4 * 16);
  EXPECT_EQ(count.ffn_matrices, 2 * 2 * 4 * 16);
  EXPECT_EQ(count.biases, 2 * (12 + 4 + 16 + 4));
  EXPECT_EQ(count.norms, 2 * 2 * 8 + 8);
  EXPECT_EQ(count.head, 0);
  EXPECT_EQ(count.total(), 40 + 32 + 128 + 256 + 72 + 40);
  EXPECT_EQ(count.non_embedding(), 128 + 256 + 72 + 40);
  EXPECT_EQ(count.paper_12Ld2, 12 * 2 * 16);
}

TEST(Parameters, HandCountOfATinyGatedGroupedShape) {
  // L=1, D=8, 4 heads of free size 3, 2 kv heads, F=5 gated, V=7 untied, RMSNorm, no biases.
  ShapeRequest request;
  request.layers = 1;
  request.width = 8;
  request.heads = 4;
  request.kv_heads = 2;
  request.head_size = 3;
  request.ffn = 5;
  request.gated = true;
  request.vocab = 7;
  request.tied = false;
  const ParameterCount count = count_parameters(complete(request));
  EXPECT_EQ(count.attention_matrices, 8 * 12 + 2 * 8 * 6 + 12 * 8);
  EXPECT_EQ(count.ffn_matrices, 3 * 8 * 5);
  EXPECT_EQ(count.head, 56);
  EXPECT_EQ(count.norms, 3 * 8);
  EXPECT_EQ(count.biases, 0);
  EXPECT_EQ(count.total(), 56 + 56 + 288 + 120 + 24);
}

struct Published {
  const char* name;
  std::int64_t total;
};

// Totals of the released checkpoints.
TEST(Parameters, PublishedModelsExactToTheLastOne) {
  for (const Published& model : {Published{"gpt2", 124'439'808},
                                 {"GPT-2 XL", 1'557'611'200},
                                 {"Llama-2-7b", 6'738'415'616},
                                 {"Llama-3-8B", 8'030'261'248},
                                 {"Mistral-7B-v0.1", 7'241'732'096},
                                 {"Qwen2.5-0.5B", 494'032'768},
                                 {"pythia-160m", 162'322'944},
                                 {"OPT-125M", 125'239'296},
                                 {"Gemma-2-2b", 2'614'341'888},
                                 {"Qwen3-0.6B", 596'049'920},
                                 {"BLOOM-560m", 559'214'592},
                                 {"Gemstone-1024x28", 543'482'880},
                                 {"Gemstone-384x13", 66'758'784}}) {
    EXPECT_EQ(count_parameters(find_published(model.name).shape).total(), model.total)
        << model.name;
  }
}

TEST(Parameters, EveryDenseRowAgreesWithItsStatedTotal) {
  std::size_t rows = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    if (!entry.dense_decoder()) continue;
    ++rows;
    const ParameterCount count = count_parameters(entry.shape);
    ASSERT_GT(entry.stated_total, 0) << entry.name;
    EXPECT_NEAR(static_cast<double>(count.total()) / entry.stated_total, 1, 0.01) << entry.name;
  }
  EXPECT_EQ(rows, 260u);
}

}  // namespace
}  // namespace fathom
