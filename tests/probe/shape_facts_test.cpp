// A law's price of fewer layers is stated where its data reach, and nowhere else.
#include "probe/shape_facts.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fathom::probe {
namespace {

pretrained::Layout llama(std::int64_t layers, std::int64_t width, std::int64_t heads,
                         std::int64_t ffn) {
  pretrained::Layout layout;
  layout.width = width;
  layout.heads = layout.key_heads = heads;
  layout.head_size = width / heads;
  layout.ffn = ffn;
  layout.vocab = 32000;
  layout.context = 2048;
  layout.layers.resize(static_cast<std::size_t>(layers));
  return layout;
}

// Gemstones (arXiv 2502.06857) trained 50M to 2B parameters on 10 to 350 B tokens: TinyLlama's
// shape lies inside.
TEST(ShapeFacts, ALawPricesAModelInsideItsData) {
  const ShapeFacts facts = shape_facts(llama(22, 2048, 32, 5632), {}, "h200");
  ASSERT_TRUE(facts.trained_price);
  EXPECT_EQ(facts.cut, 5);
  EXPECT_EQ(facts.trained_price->evidence, "fitted");
  EXPECT_GT(facts.trained_price->nats, 0);
  EXPECT_LT(facts.trained_price->nats, 0.2);
}

TEST(ShapeFacts, ATinyModelHasNoPrice) {
  EXPECT_FALSE(shape_facts(llama(5, 64, 8, 172), {}, "h200").trained_price);
}

}  // namespace
}  // namespace fathom::probe
