// The CUDA module's functions one by one against plain loops, at sizes that fit no tile.
#include <gtest/gtest.h>

#include "core/random.h"
#include "pretrained/device_model.h"
#include "pretrained/test_device.h"

namespace fathom::pretrained {
namespace {

std::vector<float> numbers(std::int64_t count, std::uint64_t seed, double scale = 1) {
  const RandomStream stream(seed, 3);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(scale * stream.normal(i));
  }
  return values;
}

void round_to_bf16(std::vector<float>& values) {
  for (float& value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bits &= 0xffff0000u;
    std::memcpy(&value, &bits, sizeof bits);
  }
}

class CudaInferenceTest : public testing::TestWithParam<TestDevice> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
    device_ = make_inference(GetParam());
  }

  /// `call` on both; the result's largest difference relative to its largest number.
  template <class Call>
  double difference(const std::vector<std::vector<float>>& inputs, std::int64_t count,
                    const Call& call) {
    const auto run = [&](engine::Inference& math) {
      std::vector<DeviceFloats> held;
      std::vector<float*> pointers;
      for (const auto& input : inputs) {
        held.emplace_back(math, input);
        pointers.push_back(held.back().data());
      }
      const DeviceFloats out(math, count);
      call(math, pointers, out.data());
      std::vector<float> values(static_cast<std::size_t>(count));
      math.download(out.data(), count * 4, values.data());
      return values;
    };
    const std::vector<float> got = run(*device_), want = run(plain_);
    double largest = 1e-30, worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(want[i])));
      const double apart = std::abs(static_cast<double>(got[i]) - want[i]);
      worst = apart <= worst ? worst : apart;
    }
    return worst / largest;
  }

  std::unique_ptr<engine::Inference> device_;
  PlainInference plain_;
};

TEST_P(CudaInferenceTest, ProductsOfAllStoredTypesAreThoseOfF32) {
  for (const auto& [rows, out, in] :
       {std::array<std::int64_t, 3>{1, 5, 3}, {65, 29, 32}, {130, 192, 264}, {40, 1000, 2048}}) {
    for (const bool narrow : {false, true}) {
      std::vector<float> w = numbers(out * in, 5, 1 / std::sqrt(static_cast<double>(in)));
      if (narrow) round_to_bf16(w);
      const double apart = difference(
          {numbers(rows * in, 6), numbers(out, 7)}, rows * out,
          [&, r = rows, o = out, i = in](engine::Inference& math, const auto& p, float* y) {
            const auto matrix = math.matrix(w.data(), o, i);
            math.multiply(p[0], r, *matrix, p[1], y);
          });
      EXPECT_LT(apart, 1e-5) << rows << " " << out << " " << in << " " << narrow;
    }
  }
}

TEST_P(CudaInferenceTest, AttentionSeesWhatItMay) {
  SequenceShape s{.sequences = 2, .tokens = 150, .heads = 6, .key_heads = 2, .head_size = 64};
  s.scale = 0.2f;
  for (const std::int64_t size : {8, 80, 128, 200}) {
    for (const std::int64_t window : {0, 1, 40, 70}) {
      for (const int kind : {0, 1, 2}) {
        s.head_size = size;
        s.window = window;
        s.causal = kind != 1;
        s.cap = kind == 2 ? 1.5f : 0;
        const std::vector<float> qkv = numbers(s.rows() * s.stride(), 11);
        const std::int64_t count = s.rows() * s.heads * size;
        EXPECT_LT(difference({qkv}, count,
                             [&](engine::Inference& math, const auto& p, float* y) {
                               math.attend(s, p[0], y);
                             }),
                  1e-5)
            << size << " " << window << " " << kind;
        EXPECT_LT(difference({qkv}, s.tokens * s.tokens,
                             [&](engine::Inference& math, const auto& p, float* y) {
                               math.attention_weights(s, 4, p[0], y);
                             }),
                  1e-5)
            << size << " " << window << " " << kind;
      }
    }
  }
}

TEST_P(CudaInferenceTest, RowsAreNormalisedRotatedAndActivated) {
  const std::int64_t rows = 37;
  for (const bool centred : {false, true}) {
    for (const std::int64_t parts : {1, 5}) {
      const engine::NormShape shape{rows, parts, 66, parts * 66 + 9, centred, 1e-5};
      EXPECT_LT(difference({numbers(rows * shape.stride, 1), numbers(66, 2), numbers(66, 3)},
                           rows * shape.stride,
                           [&](engine::Inference& math, const auto& p, float* y) {
                             math.normalise(shape, p[0], p[1], centred ? p[2] : nullptr, y);
                           }),
                1e-6);
    }
  }
  const SequenceShape s{.sequences = 2, .tokens = 9, .heads = 3, .key_heads = 1, .head_size = 10};
  EXPECT_LT(difference({numbers(9 * 4, 4), numbers(9 * 4, 5), numbers(s.rows() * s.stride(), 6)},
                       s.rows() * s.stride(),
                       [&](engine::Inference& math, const auto& p, float* y) {
                         math.copy(p[2], s.rows() * s.stride() * 4, y);
                         math.rotate(s, 4, p[0], p[1], y);
                       }),
            1e-6);
  for (const RowActivation kind :
       {RowActivation::relu, RowActivation::gelu, RowActivation::gelu_tanh, RowActivation::silu,
        RowActivation::identity}) {
    for (const bool gated : {false, true}) {
      EXPECT_LT(difference({numbers(rows * (gated ? 26 : 13), 8, 3)}, rows * 13,
                           [&](engine::Inference& math, const auto& p, float* y) {
                             math.activate(p[0], rows, 13, kind, gated, y);
                           }),
                1e-6);
    }
  }
}

TEST_P(CudaInferenceTest, SmallStepsAreExact) {
  const std::int64_t rows = 21, size = 34;
  EXPECT_EQ(
      difference({numbers(rows * size, 1), numbers(rows * size, 2), numbers(size, 3)}, rows * size,
                 [&](engine::Inference& math, const auto& p, float* y) {
                   math.copy(p[0], rows * size * 4, y);
                   math.add_scaled(y, p[1], rows * size, 0.5f);
                   math.add_bias(y, rows, size, p[2]);
                   math.set_columns(rows, size, 3, 7, p[2], y);
                   math.set_columns(rows, size, 30, 4, nullptr, y);
                 }),
      0);
  EXPECT_LT(difference({numbers(rows * size, 1, 4)}, rows * size,
                       [&](engine::Inference& math, const auto& p, float* y) {
                         math.copy(p[0], rows * size * 4, y);
                         math.scale_and_cap(y, rows * size, 0.5f, 2);
                       }),
            1e-6);
  std::vector<float> targets(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::int32_t id = i == 4 ? -1 : static_cast<std::int32_t>(i * 40);
    std::memcpy(&targets[i], &id, sizeof id);
  }
  EXPECT_LT(difference({numbers(rows * 1001, 9, 5), targets}, rows,
                       [&](engine::Inference& math, const auto& p, float* y) {
                         math.losses(p[0], rows, 1001, reinterpret_cast<std::int32_t*>(p[1]), y);
                       }),
            1e-6);
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaInferenceTest,
                         testing::Values(TestDevice::cuda, TestDevice::cuda_generic), device_name);

}  // namespace
}  // namespace fathom::pretrained
