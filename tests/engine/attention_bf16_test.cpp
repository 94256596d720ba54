// Attention on bf16: every instruction set against the reference in double on the same rounded
// inputs. Results, weights and slopes are rounded to 8 bits on the way, so agreement is to a few
// parts in a thousand of the norm.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/cpu/cpu_executor.h"
#include "engine/op_case.h"
#include "engine/ref/ref_executor.h"

namespace fathom::engine {
namespace {

struct Case {
  std::string name;
  AttentionShape shape;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

AttentionShape shape(std::int64_t context, std::int64_t heads, std::int64_t key_heads,
                     std::int64_t head_size, MaskKind mask, std::int64_t window = 0,
                     float rotary = 0) {
  AttentionShape s;
  s.batch = 2;
  s.context = context;
  s.heads = heads;
  s.key_heads = key_heads;
  s.head_size = head_size;
  s.mask = mask;
  s.window = window;
  s.scale = 1 / std::sqrt(static_cast<float>(head_size));
  s.rotary_base = rotary;
  return s;
}

std::vector<Case> cases() {
  return {{"causal", shape(130, 2, 2, 32, MaskKind::causal)},
          {"causal_wide", shape(64, 1, 1, 64, MaskKind::causal)},
          {"odd_size", shape(70, 2, 1, 21, MaskKind::causal)},
          {"grouped_rotary", shape(100, 4, 2, 20, MaskKind::causal, 0, 10000)},
          {"strict_window", shape(150, 2, 2, 16, MaskKind::strict, 40)},
          {"bidirectional", shape(90, 2, 2, 32, MaskKind::bidirectional)}};
}

/// x W^T is the qkv of an attention whose result has a given gradient; reads y and dW.
struct AttentionPlan {
  explicit AttentionPlan(const AttentionShape& s) {
    const std::int64_t rows = s.batch * s.context, cols = s.qkv_cols();
    x = plan.input("x", DType::bf16, rows, 24);
    weight = plan.parameter("w", cols, 24);
    const TensorId qkv = plan.activation("qkv", DType::bf16, rows, cols);
    plan.append(Linear{x, plan.compute_copy(weight, DType::bf16), {}, qkv});
    y = plan.activation("y", DType::bf16, rows, s.heads * s.head_size);
    const TensorId stats = plan.activation("stats", DType::f32, s.batch * s.heads, s.context);
    plan.append(Attention{qkv, y, stats, s});
    dy = plan.input("dy", DType::bf16, rows, s.heads * s.head_size);
    plan.seed_gradient(y, dy);
    plan.keep(y);
    plan.finish();
  }
  StepPlan plan;
  TensorId x, weight, y, dy;
};

std::vector<float> random_halves(std::int64_t count, std::uint64_t seed) {
  const RandomStream random(seed, 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(random.below(i, 129)) - 64) / 64.0f;
  }
  return values;
}

std::array<std::vector<float>, 2> run(Executor& executor, const AttentionPlan& built) {
  const auto size = [&](TensorId id) { return built.plan.tensor(id).size(); };
  executor.write(built.x, random_halves(size(built.x), 1));
  executor.write(built.dy, random_halves(size(built.dy), 2));
  executor.write(built.weight, random_halves(size(built.weight), 3));
  executor.run(Program::refresh, case_scalars());
  executor.run(Program::train, case_scalars());
  return {read_all(executor, built.y), read_all(executor, built.plan.gradient(built.weight))};
}

double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(difference / norm);
}

class AttentionBf16 : public testing::TestWithParam<std::tuple<Case, Isa>> {};

TEST_P(AttentionBf16, IsNearTheReferenceAndRepeats) {
  const auto& [c, isa] = GetParam();
  if (!has_isa(isa)) GTEST_SKIP() << "this processor has no " << name_of(isa);
  const AttentionPlan built(c.shape);
  RefExecutor reference(built.plan);
  CpuExecutor one(built.plan, {.threads = 1, .isa = isa});
  CpuExecutor two(built.plan, {.threads = 2, .isa = isa});
  const auto expected = run(reference, built), actual = run(one, built);
  EXPECT_LT(relative_difference(expected[0], actual[0]), 0.006);
  EXPECT_LT(relative_difference(expected[1], actual[1]), 0.012);
  EXPECT_EQ(actual, run(two, built));
}

INSTANTIATE_TEST_SUITE_P(Cases, AttentionBf16,
                         testing::Combine(testing::ValuesIn(cases()),
                                          testing::Values(Isa::portable, Isa::avx512,
                                                          Isa::avx512bf16)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  name_of(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace fathom::engine
