// Logits has no gradient and so no place in the table of cases: it is held against the reference
// and against a GEMM by hand, in f32 and bf16.
#include <gtest/gtest.h>

#include "engine/cpu/cpu_executor.h"
#include "engine/op_case.h"
#include "engine/ref/ref_executor.h"

namespace fathom::engine {
namespace {

constexpr std::int64_t kLogitRows = 5, kWidth = 21, kClasses = 37;

struct LogitsPlan {
  explicit LogitsPlan(DType type, bool bias) {
    x = plan.input("x", type, kLogitRows, kWidth);
    weight = plan.parameter("weight", kClasses, kWidth);
    if (bias) b = plan.parameter("bias", 1, kClasses);
    logits = plan.output("logits", kLogitRows, kClasses);
    plan.append(Logits{x, plan.compute_copy(weight, type), b, logits, 0.75f});
    plan.finish();
  }
  StepPlan plan;
  TensorId x, weight, b, logits;
};

/// Eighths: exact in bf16, so that every precision must give the same sums.
std::vector<float> eighths(std::int64_t count, std::uint64_t seed) {
  const RandomStream random(seed, 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(random.below(i, 17)) - 8) / 8.0f;
  }
  return values;
}

std::vector<float> run(Executor& executor, const LogitsPlan& built) {
  executor.write(built.x, eighths(kLogitRows * kWidth, 1));
  executor.write(built.weight, eighths(kClasses * kWidth, 2));
  if (built.b.exists()) executor.write(built.b, eighths(kClasses, 3));
  executor.run(Program::refresh, case_scalars());
  executor.run(Program::evaluate, case_scalars());
  return read_all(executor, built.logits);
}

class LogitsTest : public testing::TestWithParam<std::tuple<DType, bool>> {};

TEST_P(LogitsTest, AreTheScaledProductPlusBias) {
  const auto [type, bias] = GetParam();
  const LogitsPlan built(type, bias);
  const auto x = eighths(kLogitRows * kWidth, 1), w = eighths(kClasses * kWidth, 2);
  const auto b = eighths(kClasses, 3);
  std::vector<float> expected;
  for (std::size_t n = 0; n < kLogitRows; ++n) {
    for (std::size_t v = 0; v < kClasses; ++v) {
      float sum = 0;  // of multiples of 1/64 below 2^15: exact in any order
      for (std::size_t i = 0; i < kWidth; ++i) sum += x[n * kWidth + i] * w[v * kWidth + i];
      expected.push_back(0.75f * sum + (bias ? b[v] : 0.0f));
    }
  }
  RefExecutor reference(built.plan);
  EXPECT_EQ(run(reference, built), expected);
  for (const int threads : {1, 2}) {
    CpuExecutor cpu(built.plan, {.threads = threads});
    EXPECT_EQ(run(cpu, built), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LogitsTest,
                         testing::Combine(testing::Values(DType::f32, DType::bf16),
                                          testing::Bool()));

}  // namespace
}  // namespace fathom::engine
