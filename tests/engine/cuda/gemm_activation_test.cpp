// GEMMs with an activation in their epilogue against their definition in double precision: values,
// slopes where they lie, column sums, equal bits in two runs, nothing behind the end.
#include "engine/cuda/gemm/gemm_activation.h"

#include <numbers>

#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/device_memory.h"

namespace fathom::engine::cuda {
namespace {

double activated(ActivationKind kind, double u) {
  if (kind == ActivationKind::relu) return u > 0 ? u : 0;
  if (kind == ActivationKind::gelu) return u * 0.5 * (1 + std::erf(u / std::numbers::sqrt2));
  return 0.5 * u * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (u + 0.044715 * u * u * u)));
}

double slope_of(ActivationKind kind, double u) {
  constexpr double kPi = std::numbers::pi;
  if (kind == ActivationKind::relu) return u > 0 ? 1 : 0;
  if (kind == ActivationKind::gelu) {
    return 0.5 * (1 + std::erf(u / std::numbers::sqrt2)) +
           u * std::exp(-0.5 * u * u) / std::sqrt(2 * kPi);
  }
  const double k = std::sqrt(2 / kPi), t = std::tanh(k * (u + 0.044715 * u * u * u));
  return 0.5 * (1 + t) + 0.5 * u * (1 - t * t) * k * (1 + 3 * 0.044715 * u * u);
}

/// Where the slope of an element lies, see gemm_activation.h.
std::size_t slope_place(std::int64_t row, std::int64_t column, std::int64_t n) {
  const std::int64_t tile = row / 64 * (n / 128) + column / 128, r = row % 64, c = column % 128;
  const std::int64_t thread = r / 16 * 32 + r % 8 * 4 + c % 8 / 2;
  const std::int64_t byte = c / 8 % 4 * 4 + r % 16 / 8 * 2 + c % 2;
  return static_cast<std::size_t>(tile * 8192 + c / 32 * 2048 + thread * 16 + byte);
}

struct Case {
  GemmActivationSpec spec;
  bool bias = false;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.spec.name() << (c.bias ? " with a bias" : "");
}

/// Operands of a case, and what they should give.
struct Problem {
  explicit Problem(const Case& c) : spec(c.spec) {
    const std::int64_t m = spec.m, n = spec.n, k = spec.k;
    a = random_bf16(m * k, 1, 1);
    b = random_bf16(n * k, 1 / std::sqrt(static_cast<float>(k)), 2);
    bias = random_floats(n, c.bias ? 0.5f : 0.0f, 4);
    given.resize(static_cast<std::size_t>(m * n));
    std::mt19937 generator(3);
    for (auto& code : given) code = static_cast<std::uint8_t>(generator() >> 24);
    out.resize(given.size());
    codes.resize(given.size());
    sums.resize(bias.size());
    in_parallel(m, [&](std::int64_t row) { define_row(row); });
    for (std::size_t i = 0; i < out.size(); ++i) sums[i % sums.size()] += out[i];
  }

  void define_row(std::int64_t row) {
    const std::int64_t n = spec.n, k = spec.k;
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < k; ++i) {
        sum +=
            value_of(a[at(row * k + i)]) * value_of(b[at(spec.backward ? i * n + j : j * k + i)]);
      }
      const double u = sum + bias[at(j)];
      const double code = given[slope_place(row, j, n)];
      out[at(row * n + j)] =
          spec.backward ? sum * (code - kSlopeZero) / kSlopeSteps : activated(spec.kind, u);
      codes[at(row * n + j)] = slope_of(spec.kind, u) * kSlopeSteps + kSlopeZero;
    }
  }
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  GemmActivationSpec spec;
  std::vector<Bits> a, b;
  std::vector<float> bias;
  std::vector<std::uint8_t> given;       // slopes that the backward reads
  std::vector<double> out, codes, sums;  // expected; codes by row and column
};

/// Codes of slopes may be off by half a step, and by a whole one for the error of the sums and of
/// the hardware's tanh. Relu's slope jumps where the sum's error decides its sign.
void expect_slopes(const Problem& problem, const std::vector<std::uint8_t>& got) {
  const std::int64_t n = problem.spec.n;
  std::int64_t bad = 0;
  for (std::size_t i = 0; i < problem.codes.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / n, column = static_cast<std::int64_t>(i) % n;
    if (problem.spec.kind == ActivationKind::relu && std::abs(problem.out[i]) < 2e-2) continue;
    bad += std::abs(got[slope_place(row, column, n)] - problem.codes[i]) > 1.5;
  }
  EXPECT_EQ(bad, 0) << "wrong slopes";
}

class GemmActivationTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_hopper(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(GemmActivationTest, IsItsDefinition) {
  const auto& [spec, with_bias] = GetParam();
  const Problem problem(GetParam());
  const Gpu gpu = find_gpu(0);
  const Halves a(problem.a), b(problem.b);
  const Floats bias(problem.bias);
  Halves result(spec.m * spec.n);
  Bytes codes(spec.m * spec.n);
  const auto variants = GemmActivation::variants(spec, gpu);
  ASSERT_FALSE(variants.empty());
  for (const GemmActivationVariant& variant : variants) {
    SCOPED_TRACE(variant.name());
    result.poison();
    codes.poison();
    if (spec.backward) codes.write(problem.given);
    const GemmActivation gemm(
        spec, {a.data(), b.data(), with_bias ? bias.data() : nullptr, codes.data(), result.data()},
        variant, gpu);
    Floats partial(gemm.parts() * spec.n), total(spec.n);
    gemm.run(partial.data(), nullptr);
    check(cudaDeviceSynchronize(), "GEMM with an activation");
    const auto first = result.read();
    const auto first_codes = codes.read();
    expect_near("out", first, problem.out, spec.n, 0.004, 0.002);
    if (spec.backward) {
      reduce_parts(partial.data(), gemm.parts(), spec.n, {total.data(), false}, 1, nullptr);
      expect_near("sums", total.read(), problem.sums, spec.n, 0,
                  2e-3 * std::sqrt(static_cast<double>(spec.m)));
    } else {
      expect_slopes(problem, first_codes);
    }
    gemm.run(partial.data(), nullptr);
    check(cudaDeviceSynchronize(), "GEMM with an activation");
    EXPECT_TRUE(first == result.read() && first_codes == codes.read()) << "another run differs";
    EXPECT_TRUE(codes.guard_holds() && result.guard_holds() && partial.guard_holds());
  }
}

std::vector<Case> cases() {
  const std::int64_t shapes[][3] = {{64, 128, 64},    {128, 128, 128},  {64, 128, 40},
                                    {192, 384, 72},   {1024, 512, 128}, {320, 384, 192},
                                    {576, 1024, 256}, {704, 2048, 512}, {832, 384, 488},
                                    {9024, 256, 64},  {64, 128, 264},   {448, 640, 1000}};
  std::vector<Case> all;
  for (const auto& [m, n, k] : shapes) {
    for (const ActivationKind kind :
         {ActivationKind::relu, ActivationKind::gelu, ActivationKind::gelu_tanh}) {
      all.push_back({{m, n, k, kind, false}, true});
    }
    all.push_back({{m, n, k, ActivationKind::relu, false}, false});
    all.push_back({{m, n, k, ActivationKind::relu, true}, false});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, GemmActivationTest, testing::ValuesIn(cases()));

}  // namespace
}  // namespace fathom::engine::cuda
