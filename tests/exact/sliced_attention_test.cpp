// Slices of a stream against the definition written out on whole vectors.
#include "exact/sliced_attention.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "exact/separation_rank.h"

namespace fathom::exact {
namespace {

using Element = PrimeField::Element;

/// The same network with every layer's matrices padded by zeros to the width of the stream.
Element padded_output(const SlicedShape& shape, const AttentionWeights<Element>& weights,
                      const std::vector<Element>& inputs, const PrimeField& field) {
  const std::size_t D = shape.stream;
  const std::size_t d = shape.layer.width;
  AttentionShape wide = shape.layer;
  wide.width = D;
  wide.heads = 1;
  wide.layers = 1;
  wide.residual = true;
  std::vector<Element> x = inputs;
  for (std::size_t l = 0; l < shape.layer.layers; ++l) {
    AttentionLayer<Element> layer;
    for (auto* matrix : {&layer.query, &layer.key, &layer.value, &layer.output}) {
      matrix->assign(D * D, 0);
    }
    const auto fill = [&](std::vector<Element>& to, const std::vector<Element>& from) {
      for (std::size_t i = 0; i < d; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
          const std::size_t row = (l * shape.stride + i) % D;
          to[row * D + (l * shape.stride + j) % D] = from[i * d + j];
        }
      }
    };
    fill(layer.query, weights[l].query);
    fill(layer.key, weights[l].key);
    fill(layer.value, weights[l].value);
    fill(layer.output, weights[l].output);
    // One layer at every position.
    std::vector<Element> next;
    for (std::size_t i = 0; i < wide.positions; ++i) {
      for (std::size_t c = 0; c < D; ++c) {
        wide.output_position = i;
        wide.output_component = c;
        std::vector<Element> copy = x;
        std::vector<Element> scratch(attention_scratch(wide));
        next.push_back(attention_output(field, wide, AttentionWeights<Element>{layer}, copy.data(),
                                        scratch.data()));
      }
    }
    x = next;
  }
  return x[shape.layer.output_position * D + shape.layer.output_component];
}

TEST(SlicedAttention, IsTheWideNetworkWithPaddedWeights) {
  const PrimeField field(8388593);
  FieldSampler sampler(3, 1, field);
  for (const auto& [d, D, stride] :
       std::vector<std::array<std::size_t, 3>>{{2, 4, 1}, {2, 4, 2}, {3, 5, 2}, {2, 3, 2}}) {
    SlicedShape shape;
    shape.layer.layers = 3;
    shape.layer.width = d;
    shape.layer.positions = 3;
    shape.layer.output_position = 2;
    shape.layer.output_component = D - 1;
    shape.layer.residual = true;
    shape.stream = D;
    shape.stride = stride;
    const auto weights = random_attention_weights(shape.layer, sampler);
    const std::vector<Element> inputs = sampler.vector(3 * D);
    std::vector<Element> x = inputs;
    std::vector<Element> scratch(sliced_scratch(shape));
    EXPECT_EQ(sliced_output(field, shape, weights, x.data(), scratch.data()),
              padded_output(shape, weights, inputs, field))
        << d << " of " << D;
  }
}

RankSetting sliced_setting() {
  RankSetting setting;
  setting.layers = 2;
  setting.width = 2;
  setting.positions = 8;
  setting.partition = "00001111";
  setting.output_position = 7;
  setting.residual = true;
  setting.stream = 4;
  setting.stride = 1;
  setting.output_component = 1;
  return setting;
}

TEST(SlicedAttention, RankLiesBetweenTheNarrowAndTheWideNetwork) {
  const RankResult found = compute_rank(sliced_setting());
  EXPECT_EQ(found.rank, 20u);  // 18 for width 2, 110 for width 4
  EXPECT_EQ(found.status, RankStatus::generic);
  EXPECT_EQ(found.rmax, 110);
}

TEST(SlicedAttention, SettingsWithoutMeaningAreRefused) {
  const auto refused = [](auto change) {
    RankSetting setting = sliced_setting();
    change(setting);
    EXPECT_THROW(compute_rank(setting), ConfigError);
  };
  refused([](RankSetting& s) { s.stream = 1; });
  refused([](RankSetting& s) { s.stride = 0; });
  refused([](RankSetting& s) { s.stride = 5; });
  refused([](RankSetting& s) { s.residual = false; });
  refused([](RankSetting& s) { s.causal = true; });
  refused([](RankSetting& s) { s.output_component = 4; });
}

}  // namespace
}  // namespace fathom::exact
