// The attention kernels against the reference in double precision: y, stats, gradients and column
// sums, equal bits in two runs, nothing behind the end. Errors are root mean squares of the
// difference over those of the exact result.
#include <gtest/gtest.h>

#include "engine/cuda/device_memory.h"
#include "engine/ops/attention/cuda/attention_kernels.h"
#include "engine/ref/ref_executor.h"

namespace fathom::engine::cuda {
namespace {

using enum AttentionKind;
using enum MaskKind;

struct Case {
  std::int64_t batch, context, heads, key_heads, head_size;
  AttentionKind kind = softmax;
  MaskKind mask = causal;
  std::int64_t window = 0;
  float rotary = 0;
  bool bf16 = true;

  AttentionShape shape() const {
    AttentionShape s{batch, context, heads, key_heads, head_size, kind, mask, window, 0, rotary};
    s.scale = kind == softmax ? 1 / std::sqrt(static_cast<float>(head_size)) : 0.05f;
    return s;
  }
};

void PrintTo(const Case& c, std::ostream* out) {
  constexpr const char* kKinds[] = {"softmax", "none", "linear"};
  constexpr const char* kMasks[] = {"causal", "bidirectional", "strict"};
  *out << (c.bf16 ? "bf16 " : "f32 ") << kKinds[static_cast<int>(c.kind)] << " "
       << kMasks[static_cast<int>(c.mask)] << " B" << c.batch << " T" << c.context << " H"
       << c.heads << " G" << c.key_heads << " K" << c.head_size << " window " << c.window
       << (c.rotary > 0 ? " rotary" : "");
}

std::vector<float> rounded(std::vector<float> values, bool bf16) {
  for (float& x : values) x = bf16 ? from_bf16(to_bf16(x)) : x;
  return values;
}

/// Operands and the reference's results.
struct Problem {
  Problem(const Case& c, float strength) : given(c) {
    const AttentionShape s = c.shape();
    const std::int64_t rows = s.batch * s.context, wide = s.qkv_cols();
    qkv = rounded(random_floats(rows * wide, strength, 17), c.bf16);
    dy = rounded(random_floats(rows * s.heads * s.head_size, 1, 18), c.bf16);
    StepPlan plan;
    const TensorId x = plan.parameter("x", rows, wide), zero = plan.parameter("0", rows, wide);
    const TensorId sum = plan.activation("qkv", DType::f32, rows, wide);
    const TensorId y_id = plan.activation("y", DType::f32, rows, s.heads * s.head_size);
    const TensorId d = plan.input("dy", DType::f32, rows, s.heads * s.head_size);
    const TensorId stats_id = plan.activation("stats", DType::f32, s.batch * s.heads, s.context);
    plan.append(Residual{x, zero, sum, 1, 0});
    plan.append(Attention{sum, y_id, stats_id, s});
    plan.seed_gradient(y_id, d);
    plan.finish();
    RefExecutor reference(plan);
    reference.write(x, qkv);
    reference.write(d, dy);
    reference.run(Program::train, {});
    const auto take = [&](TensorId id) {
      return std::vector<double>(reference.data(id), reference.data(id) + plan.tensor(id).size());
    };
    y = take(y_id);
    stats = take(stats_id);
    d_qkv = take(plan.gradient(x));
  }

  Case given;
  std::vector<float> qkv, dy;
  std::vector<double> y, stats, d_qkv;
};

/// f32 or bf16 on the device.
class Values {
 public:
  Values(std::int64_t size, bool bf16)
      : bf16_(bf16), floats_(bf16 ? 1 : size), halves_(bf16 ? size : 1) {}
  Values(const std::vector<float>& values, bool bf16)
      : Values(static_cast<std::int64_t>(values.size()), bf16) {
    std::vector<Bits> halves;
    for (const float x : values) halves.push_back(to_bf16(x));
    bf16 ? halves_.write(halves) : floats_.write(values);
  }
  void* data() const { return bf16_ ? static_cast<void*>(halves_.data()) : floats_.data(); }
  void poison() { bf16_ ? halves_.poison() : floats_.poison(); }
  bool guard_holds() const { return floats_.guard_holds() && halves_.guard_holds(); }
  std::vector<double> read() const {
    std::vector<double> values;
    if (bf16_) {
      for (const Bits x : halves_.read()) values.push_back(value_of(x));
    } else {
      for (const float x : floats_.read()) values.push_back(x);
    }
    return values;
  }

 private:
  bool bf16_;
  Floats floats_;
  Halves halves_;
};

/// Over columns [from, to) of rows of `cols`. A NaN stays one.
double error(const std::vector<double>& got, const std::vector<double>& truth, std::int64_t cols,
             std::int64_t from, std::int64_t to) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const auto column = static_cast<std::int64_t>(i) % cols;
    if (column < from || column >= to) continue;
    difference += (got[i] - truth[i]) * (got[i] - truth[i]);
    size += truth[i] * truth[i];
  }
  return std::sqrt(difference / std::max(size, 1e-30));
}
double error(const std::vector<double>& got, const std::vector<double>& truth) {
  return error(got, truth, 1, 0, 1);
}

/// Memory of one configuration.
class Device {
 public:
  Device(const Problem& p, const AttentionConfig& config)
      : config_(config),
        qkv_(p.qkv, config.bf16),
        dy_(p.dy, config.bf16),
        y(static_cast<std::int64_t>(p.y.size()), config.bf16),
        d_qkv(static_cast<std::int64_t>(p.qkv.size()), config.bf16),
        stats(static_cast<std::int64_t>(p.stats.size()), false),
        sums(config.shape.qkv_cols(), false),
        scratch_(static_cast<std::int64_t>(attention_scratch_bytes(config))) {}

  void forward() {
    for (Values* memory : {&y, &stats}) memory->poison();
    scratch_.poison();
    attention_forward(config_, qkv_.data(), y.data(), static_cast<float*>(stats.data()),
                      scratch_.data(), nullptr);
    check(cudaDeviceSynchronize(), "attention");
  }
  void backward() {
    for (Values* memory : {&d_qkv, &sums}) memory->poison();
    scratch_.poison();  // it may not lean on what forward left there
    ColumnSums wanted;
    if (config_.sums_columns()) wanted.to = static_cast<float*>(sums.data());
    attention_backward(config_, dy_.data(), qkv_.data(), y.data(),
                       static_cast<float*>(stats.data()), d_qkv.data(), scratch_.data(), nullptr,
                       wanted);
    check(cudaDeviceSynchronize(), "attention backward");
  }
  bool guards_hold() const {
    return y.guard_holds() && d_qkv.guard_holds() && stats.guard_holds() && sums.guard_holds() &&
           scratch_.guard_holds();
  }

 private:
  AttentionConfig config_;
  Values qkv_, dy_;

 public:
  Values y, d_qkv, stats, sums;

 private:
  Bytes scratch_;
};

/// Bits, NaNs included.
bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

void expect_column_sums(const Problem& p, const Device& device, double limit) {
  const AttentionShape s = p.given.shape();
  const std::int64_t cols = s.qkv_cols(), k_at = s.heads * s.head_size;
  const std::int64_t v_at = k_at + s.key_heads * s.head_size;
  std::vector<double> columns(static_cast<std::size_t>(cols));
  for (std::size_t i = 0; i < p.d_qkv.size(); ++i) columns[i % columns.size()] += p.d_qkv[i];
  const std::vector<double> found = device.sums.read();
  EXPECT_LT(error(found, columns, cols, 0, k_at), limit) << "sums of dq";
  EXPECT_LT(error(found, columns, cols, v_at, cols), limit) << "sums of dv";
  for (std::int64_t i = k_at; i < v_at; ++i) {  // of dk: 0 but for rounding
    const auto at = static_cast<std::size_t>(i);
    EXPECT_LT(std::abs(found[at] - columns[at]), limit) << "sum of dk";
  }
}

void expect_reference(const Problem& p, const AttentionConfig& config) {
  const AttentionShape& s = config.shape;
  const double limit = config.bf16 ? 2e-2 : 1e-5;
  Device device(p, config);
  device.forward();
  device.backward();
  const auto y = device.y.read(), stats = device.stats.read(), d_qkv = device.d_qkv.read();
  const auto sums = device.sums.read();
  const std::int64_t cols = s.qkv_cols(), k_at = s.heads * s.head_size;
  const std::int64_t v_at = k_at + s.key_heads * s.head_size;
  EXPECT_LT(error(y, p.y), limit) << "y";
  EXPECT_LT(error(stats, p.stats), limit) << "stats";
  EXPECT_LT(error(d_qkv, p.d_qkv, cols, 0, k_at), limit) << "dq";
  EXPECT_LT(error(d_qkv, p.d_qkv, cols, k_at, v_at), limit) << "dk";
  EXPECT_LT(error(d_qkv, p.d_qkv, cols, v_at, cols), limit) << "dv";
  if (config.sums_columns()) expect_column_sums(p, device, limit);
  device.forward();
  device.backward();
  EXPECT_TRUE(same(y, device.y.read()) && same(stats, device.stats.read()) &&
              same(d_qkv, device.d_qkv.read()) && same(sums, device.sums.read()))
      << "another run differs";
  EXPECT_TRUE(device.guards_hold());
}

/// All configurations that serve a case on this GPU: the one chosen, that of other GPUs, both tiles
/// of the flash forward, and Hopper's backward where it would not be chosen.
std::vector<AttentionConfig> configurations(const Case& c) {
  const AttentionShape s = c.shape();
  const Gpu own = find_gpu(0), generic = find_gpu(0, true);
  std::vector<AttentionConfig> all{configure_attention(s, c.bf16, own),
                                   configure_attention(s, c.bf16, generic)};
  if (all[1].forward != AttentionKernel::flash) return all;
  all.push_back(all[1]);
  all.back().small_tiles = !all[1].small_tiles;
  if (own.hopper) {
    all.push_back(all[0]);
    all.back().forward = AttentionKernel::hopper;
    if (s.head_size > 8 && s.head_size <= 64) all.back().backward = AttentionKernel::hopper;
  }
  return all;
}

class AttentionKernels : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(AttentionKernels, AgreeWithTheReference) {
  const Problem problem(GetParam(), 1.5f);
  int number = 0;
  for (const AttentionConfig& config : configurations(GetParam())) {
    SCOPED_TRACE("configuration " + std::to_string(number++));
    expect_reference(problem, config);
  }
}

/// Weights that differ by far: the running maximum moves. Rotary kernels round q and k after they
/// are rotated, which alone moves stats by 1e-3 here.
TEST_P(AttentionKernels, ForwardWithStrongWeights) {
  const Case& c = GetParam();
  if (c.kind != softmax || !c.bf16) GTEST_SKIP() << "of the tensor-core kernels";
  const Problem problem(c, 2.5f);
  for (const AttentionConfig& config : configurations(c)) {
    Device device(problem, config);
    device.forward();
    EXPECT_LT(error(device.y.read(), problem.y), c.rotary > 0 ? 4e-2 : 2e-2);
    EXPECT_LT(error(device.stats.read(), problem.stats), c.rotary > 0 ? 3e-3 : 1e-3);
  }
}

/// Every kind, mask, shared key heads and padded head sizes; contexts whose edges no tile meets,
/// and more tiles of queries than blocks run at a time.
std::vector<Case> cases() {
  std::vector<Case> all = {
      // f32 and other kinds: the generic kernels
      {2, 64, 2, 2, 16, softmax, causal, 0, 0, false},
      {1, 96, 4, 2, 48, softmax, bidirectional, 0, 1e4f, false},
      {1, 256, 2, 1, 64, softmax, strict, 0, 0, false},
      {1, 500, 1, 1, 64, softmax, causal, 0, 1e4f, false},
      {1, 256, 2, 2, 128, softmax, causal, 70, 0, false},
      {1, 96, 2, 2, 7, softmax, causal, 0, 0, false},
      {1, 96, 2, 1, 200, softmax, causal, 0, 1e4f, false},
      {1, 256, 4, 2, 32, none, causal, 0, 1e4f, false},
      {1, 256, 4, 2, 32, linear, causal, 0, 1e4f, false},
      {1, 96, 2, 2, 64, linear, strict, 40, 0, false},
      {1, 256, 4, 2, 32, none, causal, 0, 0, true},
      {1, 256, 4, 2, 32, linear, bidirectional, 0, 1e4f, true},
      {1, 96, 2, 2, 20, softmax, causal, 0, 1e4f, true},
      {1, 96, 2, 2, 160, softmax, causal, 0, 0, true},
      // many sequences: Hopper's backward is chosen
      {70, 300, 2, 2, 32, softmax, strict},
      {70, 130, 2, 2, 64},
      {40, 200, 2, 2, 40, softmax, bidirectional},
  };
  for (const std::int64_t size : {16, 32, 64, 128, 8, 24, 48, 96}) {
    for (const Case& c : std::vector<Case>{{1, 64, 1, 1, size, softmax, bidirectional},
                                           {2, 128, 2, 2, size},
                                           {1, 65, 2, 1, size, softmax, strict},
                                           {2, 360, 4, 2, size},
                                           {1, 1, 1, 1, size, softmax, strict},
                                           {1, 300, 2, 2, size, softmax, strict, 140},
                                           {1, 200, 4, 1, size, softmax, bidirectional, 50},
                                           {1, 500, 1, 1, size, softmax, causal, 33, 1e4f},
                                           {3, 100, 3, 3, size, softmax, strict, 1},
                                           {1, 700, 2, 2, size, softmax, bidirectional, 130},
                                           {9, 130, 4, 2, size}}) {
      all.push_back(c);
    }
  }
  all.push_back({1, 1100, 1, 1, 64});
  all.push_back({1, 1100, 1, 1, 128});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionKernels, testing::ValuesIn(cases()));

}  // namespace
}  // namespace fathom::engine::cuda
