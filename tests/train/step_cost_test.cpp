#include "train/step_cost.h"

#include <gtest/gtest.h>

#include "model/transformer.h"

namespace fathom::train {
namespace {

using namespace engine;

TEST(StepCost, FlopsByHand) {
  model::ModelSpec spec;
  spec.layers = 1;
  spec.width = 8;
  spec.heads = 1;
  spec.vocab = 16;
  spec.context = 4;
  model::BuildOptions options;
  options.batch = 1;
  const auto model = model::build_transformer(spec, options);
  // Four tokens; 2 I O each for qkv (8 x 24), out (8 x 8), up and down (8 x 32), head (8 x 16); the
  // causal scores and sums of 10 pairs take 4 x 8 each.
  const double forward = 4 * 2 * (8 * 24 + 8 * 8 + 2 * 8 * 32 + 8 * 16) + 10 * 4 * 8;
  EXPECT_EQ(training_flops(model->plan), 3 * forward);
}

TEST(StepCost, BytesByHand) {
  StepPlan plan;
  const TensorId x = plan.input("x", DType::f32, 2, 3), dy = plan.input("dy", DType::f32, 2, 5);
  const TensorId weight = plan.parameter("weight", 5, 3);
  const TensorId y = plan.activation("y", DType::f32, 2, 5);
  plan.append(Linear{x, weight, {}, y});
  plan.seed_gradient(y, dy);
  plan.finish();
  // Forward: x, W, y. Backward: dy, x, dW (x is an input: no dx, for which W would be read).
  const double floats = (6 + 15 + 10) + (10 + 6 + 15);
  EXPECT_EQ(training_bytes(plan), 4 * floats);
}

}  // namespace
}  // namespace fathom::train
