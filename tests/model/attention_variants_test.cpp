// Variants of attention as keys of a spec: what is refused and why, parameters and FLOPs by hand.
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "engine/plan/op_cost.h"
#include "model/transformer.h"

namespace fathom::model {
namespace {

using engine::AttentionKind;
using engine::MaskKind;

ModelSpec small_spec() {
  ModelSpec spec;
  spec.layers = 3;
  spec.width = 32;
  spec.heads = 4;
  spec.key_heads = 2;
  spec.context = 20;
  return spec;
}

struct Refusal {
  std::function<void(ModelSpec&)> change;
  const char* says;
};

TEST(AttentionVariants, WrongValuesGetOneLine) {
  const Refusal refusals[] = {
      {[](ModelSpec& s) { s.global_tokens = 2; }, "need a window of at least 1"},
      {[](ModelSpec& s) { s.random_blocks = 1; }, "need a window of at least 1"},
      {[](ModelSpec& s) { s.window = -1; }, "window = -1"},
      {[](ModelSpec& s) { s.block_size = 8; }, "set one of them too"},
      {[](ModelSpec& s) { s.stride = 3, s.context = 1 << 16; }, "up to 32768"},
      {[](ModelSpec& s) { s.attention = AttentionKind::performer; }, "needs features"},
      {[](ModelSpec& s) { s.features = 8; }, "attention = \"performer\""},
      {[](ModelSpec& s) { s.attention = AttentionKind::performer, s.features = 8, s.window = 4; },
       "no window"},
      {[](ModelSpec& s) { s.projected_length = 4; }, "keys = \"projected\""},
      {[](ModelSpec& s) { s.keys = KeySource::projected; }, "from 1 to the context, 20"},
      {[](ModelSpec& s) { s.keys = KeySource::projected, s.projected_length = 21; },
       "from 1 to the context, 20"},
      {[](ModelSpec& s) { s.keys = KeySource::projected, s.projected_length = 4; },
       "mask = \"bidirectional\""},
      {[](ModelSpec& s) { s.keys = KeySource::synthesised, s.positions = Positions::rotary; },
       "no rotary positions"},
      {[](ModelSpec& s) { s.keys = KeySource::sorted; }, "mask = \"bidirectional\""},
      {[](ModelSpec& s) {
         s.keys = KeySource::sorted, s.block_size = 6, s.mask = MaskKind::bidirectional;
       },
       "divides the context, 20"},
      {[](ModelSpec& s) { s.slice = 12; }, "half of it divide width = 32"},
      {[](ModelSpec& s) { s.slice = 16, s.norm = NormPlace::post; }, "norm = \"pre\""},
      {[](ModelSpec& s) { s.slice = 16, s.heads = 5; }, "heads = 5 must divide slice = 16"},
      {[](ModelSpec& s) { s.heads = 5; }, "heads = 5 must divide width = 32"},
      {[](ModelSpec& s) { s.key_heads = 3; }, "key_heads = 3 must divide heads = 4"}};
  for (const Refusal& refusal : refusals) {
    ModelSpec spec = small_spec();
    refusal.change(spec);
    try {
      validate(spec);
      ADD_FAILURE() << refusal.says;
    } catch (const ConfigError& error) {
      const std::string line = error.what();
      EXPECT_NE(line.find(refusal.says), std::string::npos) << line;
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    }
  }
}

struct Cost {
  std::int64_t parameters;
  double attention_flops;  // of one forward pass
};

Cost cost_of(const std::function<void(ModelSpec&)>& change) {
  ModelSpec spec = small_spec();
  change(spec);
  const auto model = build_transformer(spec, {});
  Cost cost{model->parameter_count(), 0};
  for (const engine::Op& op : model->plan.program(engine::Program::evaluate)) {
    if (std::holds_alternative<engine::Linear>(op)) continue;
    if (std::holds_alternative<engine::HeadLoss>(op)) continue;
    cost.attention_flops += flops_of(op, model->plan.tensors());
  }
  return cost;
}

TEST(AttentionVariants, ParametersAndFlopsByHand) {
  // 3 layers, T = 20, H = 4, G = 2, K = 8; a pair of query and key costs 4 K in each head.
  const double pair = 3 * 4 * 4 * 8;
  const Cost plain = cost_of([](ModelSpec&) {});
  EXPECT_EQ(plain.attention_flops, pair * 210);
  const auto more = [&](const Cost& cost) { return cost.parameters - plain.parameters; };

  const Cost smeared = cost_of([](ModelSpec& s) { s.keys = KeySource::smeared; });
  EXPECT_EQ(more(smeared), 3 * 2);
  EXPECT_EQ(smeared.attention_flops, plain.attention_flops);

  const Cost synthesised = cost_of([](ModelSpec& s) { s.keys = KeySource::synthesised; });
  EXPECT_EQ(more(synthesised), 3 * 20 * 16);
  EXPECT_EQ(synthesised.attention_flops, plain.attention_flops);

  const Cost projected = cost_of([](ModelSpec& s) {
    s.keys = KeySource::projected;
    s.projected_length = 5;
    s.mask = MaskKind::bidirectional;
  });
  EXPECT_EQ(more(projected), 3 * 5 * 20);
  // Every query sees 5 keys; keys and values, 32 columns, are projected from 20 to 5.
  EXPECT_EQ(projected.attention_flops, pair * 20 * 5 + 3 * 2 * 32 * 5 * 20);

  const Cost normed = cost_of([](ModelSpec& s) {
    s.attention = AttentionKind::none;
    s.attention_norm = true;
  });
  EXPECT_EQ(more(normed), 3 * 32);
  EXPECT_EQ(normed.attention_flops, plain.attention_flops);

  const Cost performer = cost_of([](ModelSpec& s) {
    s.attention = AttentionKind::performer;
    s.features = 10;
  });
  EXPECT_EQ(more(performer), 0);
  // 4 query and 2 key heads: a state of 10 x 8 and as much for the features.
  EXPECT_EQ(performer.attention_flops, 3 * 20 * 6 * 2 * (2 * 80));

  const Cost sorted = cost_of([](ModelSpec& s) {
    s.keys = KeySource::sorted;
    s.block_size = 5;
    s.mask = MaskKind::bidirectional;
  });
  EXPECT_EQ(more(sorted), 3 * 4 * 16);
  // Blocks of 5 see themselves; 4 blocks are mixed, 32 columns; 4 x 4 products of 16 columns.
  EXPECT_EQ(sorted.attention_flops, pair * 20 * 5 + 3 * (2 * 32 * 4 * 20 + 2 * 16 * 4 * 4));

  const Cost local = cost_of([](ModelSpec& s) { s.own_block = true, s.block_size = 5; });
  EXPECT_EQ(more(local), 0);
  EXPECT_EQ(local.attention_flops, pair * 4 * 15);
}

TEST(AttentionVariants, ASliceHasTheLayersOfItsOwnWidth) {
  ModelSpec spec = small_spec();
  spec.slice = 16;
  const auto sliced = build_transformer(spec, {});
  spec.slice = 0;
  spec.width = 16;
  const auto narrow = build_transformer(spec, {});
  // Vocabulary 256 and 20 positions are 16 columns wider, and so is the last norm.
  EXPECT_EQ(sliced->parameter_count(),
            narrow->parameter_count() + std::int64_t{16} * (256 + 20 + 2));
}

}  // namespace
}  // namespace fathom::model
