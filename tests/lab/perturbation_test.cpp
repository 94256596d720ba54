// The residual stacks on the engine against naive loops in double, ADMIN's profile and folding.
#include <gtest/gtest.h>

#include <cmath>

#include "lab/perturbation/omega.h"

namespace fathom::lab {
namespace {

using Rows = std::vector<std::vector<double>>;

StackShape small_shape(std::size_t layers, NormPlace norm = NormPlace::post) {
  StackShape shape;
  shape.layers = layers;
  shape.width = 8;
  shape.heads = 2;
  shape.tokens = 5;
  shape.batch = 2;
  shape.norm = norm;
  return shape;
}

// ---- the second implementation

Rows normalised(const Rows& x) {
  Rows y = x;
  for (auto& row : y) {
    double mean = 0;
    for (const double value : row) mean += value / static_cast<double>(row.size());
    double variance = 0;
    for (const double value : row) {
      variance += (value - mean) * (value - mean) / static_cast<double>(row.size());
    }
    for (double& value : row) value = (value - mean) / std::sqrt(variance + 1e-5);
  }
  return y;
}

std::vector<double> linear(const std::vector<float>& weight, std::size_t first_row,
                           std::size_t rows, const std::vector<double>& x) {
  std::vector<double> y(rows, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < x.size(); ++j)
      y[i] += weight[(first_row + i) * x.size() + j] * x[j];
  }
  return y;
}

Rows attention(const StackShape& shape, const SublayerWeights& w, const Rows& x) {
  const std::size_t d = shape.width;
  const std::size_t size = d / shape.heads;
  Rows y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t first = i / shape.tokens * shape.tokens;
    const std::vector<double> q = linear(w.in, 0, d, x[i]);
    std::vector<double> mixed(d, 0);
    for (std::size_t h = 0; h < shape.heads; ++h) {
      double total = 0;
      std::vector<double> sum(size, 0);
      for (std::size_t j = first; j <= i; ++j) {
        const std::vector<double> k = linear(w.in, d, d, x[j]);
        const std::vector<double> v = linear(w.in, 2 * d, d, x[j]);
        double score = 0;
        for (std::size_t a = h * size; a < (h + 1) * size; ++a) score += q[a] * k[a];
        const double weight = std::exp(score / std::sqrt(static_cast<double>(size)));
        total += weight;
        for (std::size_t a = 0; a < size; ++a) sum[a] += weight * v[h * size + a];
      }
      for (std::size_t a = 0; a < size; ++a) mixed[h * size + a] = sum[a] / total;
    }
    y.push_back(linear(w.out, 0, d, mixed));
  }
  return y;
}

Rows feed_forward(const StackShape& shape, const SublayerWeights& w, const Rows& x) {
  Rows y;
  for (const auto& row : x) {
    std::vector<double> hidden = linear(w.in, 0, 4 * shape.width, row);
    for (double& value : hidden) value = std::max(value, 0.0);
    y.push_back(linear(w.out, 0, shape.width, hidden));
  }
  return y;
}

Rows naive(const StackShape& shape, const StackWeights& weights, const std::vector<float>& inputs,
           const std::vector<double>& omegas) {
  Rows x;
  for (std::size_t i = 0; i < shape.rows(); ++i) {
    x.emplace_back(inputs.begin() + static_cast<std::ptrdiff_t>(i * shape.width),
                   inputs.begin() + static_cast<std::ptrdiff_t>((i + 1) * shape.width));
  }
  const bool pre = shape.norm == NormPlace::pre;
  for (std::size_t s = 0; s < weights.size(); ++s) {
    const Rows from = pre ? normalised(x) : x;
    const Rows f =
        s % 2 == 0 ? attention(shape, weights[s], from) : feed_forward(shape, weights[s], from);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t a = 0; a < shape.width; ++a) {
        x[i][a] = (omegas.empty() ? 1 : omegas[s]) * x[i][a] + f[i][a];
      }
    }
    if (!pre) x = normalised(x);
  }
  return pre ? normalised(x) : x;
}

void expect_equal(const std::vector<float>& found, const Rows& truth, double tolerance) {
  for (std::size_t i = 0; i < truth.size(); ++i) {
    for (std::size_t a = 0; a < truth[i].size(); ++a) {
      ASSERT_NEAR(found[i * truth[i].size() + a], truth[i][a], tolerance);
    }
  }
}

TEST(ResidualStack, AgreesWithNaiveLoops) {
  for (const NormPlace norm : {NormPlace::post, NormPlace::pre}) {
    const StackShape shape = small_shape(3, norm);
    const StackWeights weights = draw_weights(shape, 1, 2);
    const std::vector<float> inputs = draw_inputs(shape, 1);
    std::vector<double> omegas;
    if (norm == NormPlace::post) omegas = {1, 1.5, 2, 0.7, 3, 1.2};
    ResidualStack stack(shape, omegas, {});
    expect_equal(stack.run(weights, inputs), naive(shape, weights, inputs, omegas), 2e-5);
  }
}

TEST(ResidualStack, WeightsHaveXaviersDeviation) {
  StackShape shape;
  shape.layers = 4;
  const StackWeights weights = with_branch_gain(shape, draw_weights(shape, 3, 4), 0.5);
  const double square = 1 / std::sqrt(64.0);
  const auto deviation = [](std::vector<float> values) { return std::sqrt(variance(values)); };
  const std::vector<float>& qkv = weights[0].in;
  const std::size_t third = qkv.size() / 3;
  EXPECT_NEAR(deviation({qkv.begin(), qkv.begin() + static_cast<std::ptrdiff_t>(2 * third)}),
              square, 0.03 * square);
  EXPECT_NEAR(deviation({qkv.begin() + static_cast<std::ptrdiff_t>(2 * third), qkv.end()}),
              0.5 * square, 0.03 * square);
  EXPECT_NEAR(deviation(weights[1].in), 0.5 * std::sqrt(2.0 / 320), 0.03 * square);
}

TEST(Omega, ClosedFormsByHand) {
  // 60 layers, 120 sublayers: sqrt(121 / ln 121 - 1) = 4.92 (admin-torch), DeepNorm 120^(1/4).
  EXPECT_NEAR(fixed_omegas(Scheme::closed, 60)[7], 4.92, 0.005);
  EXPECT_NEAR(fixed_omegas(Scheme::deepnorm, 60)[0], std::pow(120, 0.25), 1e-6);
  EXPECT_TRUE(fixed_omegas(Scheme::post, 60).empty());
  EXPECT_NEAR(branch_gain(Scheme::deepnorm, 60), std::pow(480, -0.25), 1e-6);
  EXPECT_EQ(branch_gain(Scheme::admin, 60), 1);
}

TEST(Omega, ProfileFollowsTheRecursion) {
  const StackShape shape = small_shape(3);
  const StackWeights weights = draw_weights(shape, 5, 6);
  const std::vector<float> inputs = draw_inputs(shape, 5);
  std::vector<double> variances;
  const std::vector<double> omegas = profile_omegas(shape, weights, inputs, {}, &variances);
  ASSERT_EQ(omegas.size(), 6u);
  EXPECT_EQ(omegas[0], 1);
  // The branches' variances in the whole network with these omegas are those of the profile.
  ResidualStack stack(shape, omegas, {});
  stack.run(weights, inputs);
  const std::vector<double> whole = stack.branch_variances();
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(variances[i] / whole[i], 1, 1e-4);
  double square = variance(inputs) + variances[0];
  EXPECT_NEAR(omegas[1] * omegas[1], square, 1e-4);
  for (std::size_t i = 2; i < 6; ++i) {
    square += variances[i - 1];
    EXPECT_NEAR(omegas[i] * omegas[i], square, 1e-4 * square);
  }
}

TEST(Omega, FoldingLeavesTheOutputs) {
  const StackShape shape = small_shape(4);
  const StackWeights weights = draw_weights(shape, 7, 8);
  const std::vector<float> inputs = draw_inputs(shape, 7);
  const std::vector<double> omegas{1.3, 2, 0.5, 3, 1, 4, 2, 1.1};
  ResidualStack with(shape, omegas, {});
  ResidualStack without(shape, {}, {});
  const FoldedStack folded = fold_omegas(weights, inputs, omegas);
  const std::vector<float> first = with.run(weights, inputs);
  const std::vector<float> second = without.run(folded.weights, folded.inputs, folded.gains);
  const std::vector<float> plain = without.run(weights, inputs);
  double folded_difference = 0;
  double plain_difference = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    folded_difference = std::max(folded_difference, std::fabs(double(first[i] - second[i])));
    plain_difference = std::max(plain_difference, std::fabs(double(first[i] - plain[i])));
  }
  EXPECT_LT(folded_difference, 1e-5);
  EXPECT_GT(plain_difference, 0.1);
}

}  // namespace
}  // namespace fathom::lab
