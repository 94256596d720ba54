// Proximal steps against values by hand and against another way to compute them.
#include <gtest/gtest.h>

#include <cmath>

#include "core/counts.h"
#include "core/random.h"
#include "engine/cpu/cpu_executor.h"
#include "engine/ref/ref_executor.h"

namespace fathom::engine {
namespace {

/// One parameter whose rows are groups of strength 2. Without gradients and decay an update is the
/// proximal step alone.
class RowsPlan {
 public:
  RowsPlan(ProxKind kind, std::int64_t rows, std::int64_t cols) {
    weight_ = plan.parameter("w", rows, cols);
    std::vector<ProxGroup> groups;
    for (std::int64_t r = 0; r < rows; ++r) groups.push_back({{{weight_, r, 1, 0, cols}}, 2});
    plan.set_adamw(0.9f, 0.95f, {{weight_, 1, 0, 1e-8f}});
    plan.set_prox(kind, std::move(groups));
    plan.finish();
  }

  std::vector<float> after(Executor& executor, const std::vector<float>& values, float rate) const {
    executor.write(weight_, values);
    StepScalars scalars;
    scalars.learning_rate = rate;
    executor.run(Program::update, scalars);
    std::vector<float> left(values.size());
    executor.read(weight_, left);
    return left;
  }

  StepPlan plan;

 private:
  TensorId weight_;
};

void expect_rows(ProxKind kind, const std::vector<float>& values, std::int64_t cols, float rate,
                 const std::vector<float>& expected) {
  const RowsPlan rows(kind, std::ssize(values) / cols, cols);
  RefExecutor reference(rows.plan);
  CpuExecutor cpu(rows.plan, {.threads = 2});
  for (Executor* executor : {static_cast<Executor*>(&reference), static_cast<Executor*>(&cpu)}) {
    const std::vector<float> left = rows.after(*executor, values, rate);
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_NEAR(left[i], expected[i], 1e-6) << i;
      EXPECT_EQ(left[i] == 0, expected[i] == 0) << i;  // zeros are exact
      EXPECT_FALSE(left[i] == 0 && std::signbit(left[i]));
    }
  }
}

TEST(Prox, ShrinksTheLengthOfAGroup) {
  // t = 2.5 * 2 = 5. Length 10 becomes 5; 5, which is t, becomes 0, and so does less.
  expect_rows(ProxKind::l21, {6, -8, 3, -4, 1, 2, 0, 0}, 2, 2.5f, {3, -4, 0, 0, 0, 0, 0, 0});
}

TEST(Prox, LevelsTheLargestOfAGroup) {
  // t = 1.5 * 2 = 3: 5 and 3 come down to 2.5 (2.5 + 0.5 = 3); three equal ones lose 1 each.
  expect_rows(ProxKind::linf1, {5, -3, 1, 2, -2, 2}, 3, 1.5f, {2.5f, -2.5f, 1, 1, -1, 1});
  // 4 falls to the 1 of its neighbours, which it may not pass before they come along.
  expect_rows(ProxKind::linf1, {4, -1, 1}, 3, 1.5f, {1, -1, 1});
  // A mass of exactly t, and one below it.
  expect_rows(ProxKind::linf1, {1, -1, 1, 0.5f, 0, -1}, 3, 1.5f, {0, 0, 0, 0, 0, 0});
}

TEST(Prox, ChangesNothingAtRateZero) {
  for (const ProxKind kind : {ProxKind::l21, ProxKind::linf1}) {
    expect_rows(kind, {3, -4, 3, 0, 0, 0}, 3, 0, {3, -4, 3, 0, 0, 0});
  }
}

/// By Moreau's identity the map of t max |x| is x less its nearest point of {|y|_1 <= t}, found
/// here by bisection.
std::vector<double> levelled(const std::vector<double>& x, double t) {
  const auto beyond = [&](double level) {
    double sum = 0;
    for (const double value : x) sum += std::max(0.0, std::abs(value) - level);
    return sum;
  };
  std::vector<double> left(x.size(), 0.0);
  if (beyond(0) <= t) return left;
  double low = 0;
  double high = 100;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (beyond(middle) > t ? low : high) = middle;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    left[i] = std::copysign(std::min(std::abs(x[i]), low), x[i]);
  }
  return left;
}

std::vector<double> shortened(const std::vector<double>& x, double t) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  std::vector<double> left;
  for (const double value : x) left.push_back(value * std::max(0.0, 1 - t / std::sqrt(squares)));
  return left;
}

/// The weights of group g in the next test: two rows of `in`, two of `bias`, two columns of `out`.
std::vector<double> group_of(const std::vector<std::vector<float>>& values, std::size_t g) {
  std::vector<double> x;
  for (std::size_t i = 0; i < 10; ++i) x.push_back(values[0][10 * g + i]);
  for (std::size_t i = 0; i < 2; ++i) x.push_back(values[1][2 * g + i]);
  for (std::size_t r = 0; r < 7; ++r) {
    for (std::size_t i = 0; i < 2; ++i) x.push_back(values[2][6 * r + 2 * g + i]);
  }
  return x;
}

/// A group of rows of one parameter, an entry of a bias and columns of another, as heads have.
TEST(Prox, FollowsTheDefinitionOnGroupsOfBlocks) {
  for (const ProxKind kind : {ProxKind::l21, ProxKind::linf1}) {
    StepPlan plan;
    const TensorId in = plan.parameter("in", 6, 5);
    const TensorId bias = plan.parameter("bias", 1, 6);
    const TensorId out = plan.parameter("out", 7, 6);
    std::vector<ProxGroup> groups;
    for (std::int64_t g = 0; g < 3; ++g) {
      groups.push_back({{{in, 2 * g, 2, 0, 5}, {bias, 0, 1, 2 * g, 2}, {out, 0, 7, 2 * g, 2}},
                        static_cast<float>(5 + 10 * g)});
    }
    plan.set_adamw(0.9f, 0.95f, {{in, 1, 0, 1e-8f}, {bias, 1, 0, 1e-8f}, {out, 1, 0, 1e-8f}});
    plan.set_prox(kind, groups);
    plan.finish();
    RefExecutor reference(plan);
    CpuExecutor one(plan, {.threads = 1});
    CpuExecutor three(plan, {.threads = 3});
    const RandomStream random(5, 1);
    std::vector<std::vector<float>> values;
    for (const TensorId id : {in, bias, out}) {
      std::vector<float>& each = values.emplace_back(as_size(plan.tensor(id).size()));
      for (std::size_t i = 0; i < each.size(); ++i) {
        each[i] = static_cast<float>(2 * random.uniform(100 * values.size() + i) - 1);
      }
    }
    StepScalars scalars;
    scalars.learning_rate = 0.1f;
    std::vector<std::vector<std::vector<float>>> left;
    for (Executor* executor : {static_cast<Executor*>(&reference), static_cast<Executor*>(&one),
                               static_cast<Executor*>(&three)}) {
      executor->write(in, values[0]);
      executor->write(bias, values[1]);
      executor->write(out, values[2]);
      executor->run(Program::update, scalars);
      auto& all = left.emplace_back(values);
      executor->read(in, all[0]);
      executor->read(bias, all[1]);
      executor->read(out, all[2]);
    }
    EXPECT_EQ(left[1], left[2]);  // threads do not matter
    for (std::size_t g = 0; g < 3; ++g) {
      const double t = 0.1f * static_cast<double>(groups[g].strength);
      const std::vector<double> expected = kind == ProxKind::l21 ? shortened(group_of(values, g), t)
                                                                 : levelled(group_of(values, g), t);
      for (const auto& each : {left[0], left[1]}) {
        const std::vector<double> actual = group_of(each, g);
        for (std::size_t i = 0; i < actual.size(); ++i) {
          EXPECT_NEAR(actual[i], expected[i], 1e-6) << "group " << g << ", weight " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fathom::engine
