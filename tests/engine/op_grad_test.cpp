// grad: every backward op against central differences of its forward op, in double.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/op_case.h"
#include "engine/ref/ref_executor.h"

namespace fathom::engine {
namespace {

class OpGrad : public testing::TestWithParam<OpCase> {};

/// <y, dy>, or the loss.
double objective(RefExecutor& executor, const BuiltCase& built) {
  executor.run(Program::refresh, case_scalars());
  executor.run(Program::train, case_scalars());  // not evaluate: that has no dropout
  if (!built.y.exists()) return executor.data(executor.plan().find("loss"))[0];
  double sum = 0;
  for (std::int64_t i = 0; i < executor.plan().tensor(built.y).size(); ++i) {
    sum += executor.data(built.y)[i] * executor.data(built.dy)[i];
  }
  return sum;
}

TEST_P(OpGrad, MatchesFiniteDifferences) {
  const BuiltCase built(GetParam());
  RefExecutor executor(built.plan);
  fill(executor, GetParam());
  executor.run(Program::train, case_scalars());
  std::vector<std::vector<double>> analytic;
  for (const TensorId parameter : built.plan.parameters()) {
    const TensorId gradient = built.plan.gradient(parameter);
    const double* values = executor.data(gradient);
    analytic.emplace_back(values, values + built.plan.tensor(gradient).size());
  }
  std::size_t checked = 0, index = 0;
  for (const TensorId parameter : built.plan.parameters()) {
    const std::vector<double>& gradient = analytic[index++];
    const std::int64_t size = built.plan.tensor(parameter).size();
    // Large tensors are sampled, so that a case costs a bounded number of forward runs.
    const std::int64_t stride = std::max<std::int64_t>(1, size / 40);
    for (std::int64_t i = 0; i < size; i += stride, ++checked) {
      double& value = executor.data(parameter)[i];
      const double kept = value, h = GetParam().epsilon;
      value = kept + h;
      const double above = objective(executor, built);
      value = kept - h;
      const double below = objective(executor, built);
      value = kept;
      const double numeric = (above - below) / (2 * h);
      EXPECT_NEAR(gradient[static_cast<std::size_t>(i)], numeric, 1e-7 * (1 + std::abs(numeric)))
          << built.plan.tensor(parameter).name << "[" << i << "]";
    }
  }
  EXPECT_GT(checked, 10u);
}

TEST_P(OpGrad, AccumulateAddsToTheGradient) {
  const BuiltCase built(GetParam());
  RefExecutor executor(built.plan);
  fill(executor, GetParam());
  executor.run(Program::train, case_scalars());
  std::vector<std::vector<float>> once;
  for (const TensorId p : built.plan.parameters()) {
    once.push_back(read_all(executor, built.plan.gradient(p)));
  }
  executor.run(Program::train_accumulate, case_scalars());
  for (std::size_t k = 0; k < once.size(); ++k) {
    const auto twice = read_all(executor, built.plan.gradient(built.plan.parameters()[k]));
    for (std::size_t i = 0; i < twice.size(); ++i) {
      EXPECT_NEAR(twice[i], 2 * once[k][i], 1e-5 * (1 + std::abs(once[k][i])));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpGrad, testing::ValuesIn(op_cases()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Fused, OpGrad, testing::ValuesIn(fused_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fathom::engine
