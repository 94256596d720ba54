// Attention by features: the directions, that random ones approximate softmax, and work that grows
// with the context and not with its square.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/cpu/cpu_executor.h"
#include "engine/op_case.h"
#include "engine/plan/op_cost.h"

namespace fathom::engine {
namespace {

AttentionShape feature_shape(AttentionKind kind, std::int64_t context, std::int64_t features) {
  AttentionShape shape{1, context, 1, 1, 8, kind, MaskKind::causal, 0, 0.35f};
  shape.features = features;
  return shape;
}

TEST(AttentionFeatures, DirectionsAreOrthogonalAndAsLongAsNormalVectors) {
  const AttentionShape shape = feature_shape(AttentionKind::performer, 4, 800);
  const std::vector<float> w = feature_directions(shape);
  ASSERT_EQ(w.size(), 800u * 8);
  const auto dot = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t c = 0; c < 8; ++c) sum += static_cast<double>(w[8 * a + c]) * w[8 * b + c];
    return sum;
  };
  double square = 0;
  for (std::size_t m = 0; m < 800; ++m) {
    square += dot(m, m) / 800;
    for (std::size_t other = m / 8 * 8; other < m; ++other) EXPECT_NEAR(dot(m, other), 0, 1e-4);
  }
  // |w|^2 is chi squared: mean 8, variance 16, so the mean of 800 has the deviation 0.14.
  EXPECT_NEAR(square, 8, 0.6);
  AttentionShape layer = shape;
  layer.seed = 2;
  EXPECT_NE(w, feature_directions(layer));
}

std::vector<float> attend(const AttentionShape& shape) {
  const OpCase op_case{
      "attend", [&](StepPlan& plan, TensorId& y) {
        const TensorId x = plan.parameter("qkv", shape.context, 24);
        const TensorId zero = plan.parameter("zero", shape.context, 24);
        const TensorId qkv = plan.activation("qkv sum", DType::f32, shape.context, 24);
        plan.append(Residual{x, zero, qkv, 1.0f, 0.0f});
        y = plan.activation("y", DType::f32, shape.context, 8);
        const TensorId stats = plan.activation("stats", DType::f32, 1, shape.context);
        plan.append(Attention{qkv, y, stats, shape});
      }};
  const BuiltCase built(op_case);
  CpuExecutor cpu(built.plan, {.threads = 1});
  fill(cpu, op_case);
  cpu.run(Program::evaluate, case_scalars());
  return read_all(cpu, built.y);
}

TEST(AttentionFeatures, RandomFeaturesApproximateSoftmax) {
  const std::vector<float> exact = attend(feature_shape(AttentionKind::softmax, 100, 0));
  const auto error = [&](std::int64_t features) {
    const auto y = attend(feature_shape(AttentionKind::performer, 100, features));
    return distance(y, exact) / norm_of(exact);
  };
  EXPECT_LT(error(2048), 0.05);
  EXPECT_GT(error(8), 2 * error(2048));
}

TEST(AttentionFeatures, WorkGrowsWithTheContext) {
  const Tensors none;
  const auto flops = [&](AttentionKind kind, std::int64_t context) {
    return flops_of(Attention{{}, {}, {}, feature_shape(kind, context, 16)}, none);
  };
  // A key joins a state of 8 x 8, a query reads it: 2 x 2 x 64 FLOPs for a token.
  EXPECT_EQ(flops(AttentionKind::linear, 100), 100 * 2 * 2 * 64);
  // States of 16 x 8, and two GEMMs of that size for the features.
  EXPECT_EQ(flops(AttentionKind::performer, 100), 100 * 2 * 2 * 128 * 2);
  for (const auto kind : {AttentionKind::linear, AttentionKind::performer}) {
    EXPECT_EQ(flops(kind, 4096), 4 * flops(kind, 1024));
  }
  EXPECT_EQ(flops(AttentionKind::softmax, 100), 4 * 8 * (100 * 101 / 2));
}

}  // namespace
}  // namespace fathom::engine
