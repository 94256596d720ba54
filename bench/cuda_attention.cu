// Checks the CUDA attention kernels against a double-precision definition and times them.
//
// Build and run from the repository root (needs nothing but the CUDA toolkit):
//   nvcc -std=c++20 -O3 -arch=sm_90a -Isrc bench/cuda_attention.cu src/engine/cuda/attention_*.cu \
//     src/engine/cuda/bulk_copy.cu -o cuda_attention && ./cuda_attention
//
// With two words, it looks at one variant of the forward kernel only: "check 2" or "rate 2".
//
// Errors are root mean squares of the difference over those of the exact result, for the adjoint
// of dq, dk, dv and the column sums of dq and dv; a case passes below 1e-5 (f32) or 2e-2 (bf16) if
// two runs agree bit for bit and nothing was written past the end. Rates count causal products
// once: forward 2 B H T^2 K, adjoint 2.5 times that; the L2 cache is overwritten before every run.
#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/cuda/attention_kernels.h"

using namespace fathom::engine;
using fathom::engine::cuda::attention_tuning;
using fathom::engine::cuda::AttentionTuning;

namespace {

using Doubles = std::vector<double>;

void require_ok(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

// ---- the definition, in doubles -----------------------------------------------------------------

struct Exact {
  Doubles y, stats, d_qkv;
};

void turn(const AttentionShape& s, std::int64_t t, double* x, double direction) {
  const std::int64_t half = s.head_size / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double angle =
        direction * t * std::pow(static_cast<double>(s.rotary_base), -2.0 * i / s.head_size);
    const double a = x[i], b = x[i + half];
    x[i] = a * std::cos(angle) - b * std::sin(angle);
    x[i + half] = a * std::sin(angle) + b * std::cos(angle);
  }
}

/// Whether the definition rounds q and k to bf16 after they are turned, as the kernels do.
bool round_turned = false;

/// All query heads of key head g of sequence b: no two groups write the same place.
void exact_group(const AttentionShape& s, const Doubles& qkv, const Doubles& dy, std::int64_t b,
                 std::int64_t g, Exact& out) {
  const std::int64_t T = s.context, K = s.head_size, cols = s.qkv_cols(), H = s.heads;
  const bool linear = s.kind == AttentionKind::linear, softmax = s.kind == AttentionKind::softmax;
  const auto gather = [&](std::int64_t column, bool seen, Doubles& raw) {
    Doubles x(T * K);
    for (std::int64_t t = 0; t < T; ++t) {
      for (std::int64_t c = 0; c < K; ++c) x[t * K + c] = qkv[(b * T + t) * cols + column + c];
      if (seen && s.rotary_base > 0) turn(s, t, &x[t * K], 1);
      for (std::int64_t c = 0; seen && round_turned && c < K; ++c) {
        x[t * K + c] = __bfloat162float(__float2bfloat16(static_cast<float>(x[t * K + c])));
      }
    }
    raw = x;
    for (double& value : x) {
      if (seen && linear) value = value > 0 ? value + 1 : std::exp(value);
    }
    return x;
  };
  const auto scatter = [&](Doubles& d, const Doubles& raw, std::int64_t column, bool seen) {
    for (std::int64_t t = 0; t < T; ++t) {
      for (std::int64_t c = 0; seen && linear && c < K; ++c) {
        d[t * K + c] *= raw[t * K + c] > 0 ? 1 : std::exp(raw[t * K + c]);
      }
      if (seen && s.rotary_base > 0) turn(s, t, &d[t * K], -1);
      for (std::int64_t c = 0; c < K; ++c)
        out.d_qkv[(b * T + t) * cols + column + c] = d[t * K + c];
    }
  };
  const auto dot = [&](const double* x, const double* y) {
    double sum = 0;
    for (std::int64_t c = 0; c < K; ++c) sum += x[c] * y[c];
    return sum;
  };
  Doubles raw_q, raw_k, raw_v, dk(T * K), dv(T * K), weights(T), p(T);
  const std::int64_t k_column = (H + g) * K, v_column = (H + s.key_heads + g) * K;
  const Doubles k = gather(k_column, true, raw_k), v = gather(v_column, false, raw_v);
  for (std::int64_t h = g * H / s.key_heads; h < (g + 1) * H / s.key_heads; ++h) {
    const Doubles q = gather(h * K, true, raw_q);
    Doubles dq(T * K);
    for (std::int64_t i = 0; i < T; ++i) {
      double top = -1e300, sum = 0, delta = 0;
      std::vector<std::int64_t> keys;
      for (std::int64_t j = 0; j < T; ++j) {
        if (!s.allows(i, j)) continue;
        keys.push_back(j);
        weights[j] = dot(&q[i * K], &k[j * K]) * (linear ? 1.0 : s.scale);
        top = std::max(top, weights[j]);
      }
      for (const std::int64_t j : keys) {
        if (softmax) weights[j] = std::exp(weights[j] - top);
        sum += weights[j];
      }
      const double norm = s.kind == AttentionKind::none || keys.empty() ? 1 : sum;
      double stat = softmax ? top + std::log(sum) : linear ? sum : 0;
      if (keys.empty()) stat = 0;
      out.stats[(b * H + h) * T + i] = stat;
      const double* grad = &dy[((b * T + i) * H + h) * K];
      double* y = &out.y[((b * T + i) * H + h) * K];
      for (const std::int64_t j : keys) {
        weights[j] /= norm;
        p[j] = dot(grad, &v[j * K]);
        delta += weights[j] * p[j];
        for (std::int64_t c = 0; c < K; ++c) y[c] += weights[j] * v[j * K + c];
      }
      for (const std::int64_t j : keys) {
        double ds = s.scale * p[j];
        if (softmax) ds = s.scale * weights[j] * (p[j] - delta);
        if (linear) ds = (p[j] - delta) / sum;
        for (std::int64_t c = 0; c < K; ++c) {
          dq[i * K + c] += ds * k[j * K + c];
          dk[j * K + c] += ds * q[i * K + c];
          dv[j * K + c] += weights[j] * grad[c];
        }
      }
    }
    scatter(dq, raw_q, h * K, true);
  }
  scatter(dk, raw_k, k_column, true);
  scatter(dv, raw_v, v_column, false);
}

Exact exact(const AttentionShape& s, const Doubles& qkv, const Doubles& dy) {
  Exact out{Doubles(dy.size()), Doubles(s.batch * s.heads * s.context), Doubles(qkv.size())};
  std::vector<std::thread> threads;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t g = 0; g < s.key_heads; ++g) {
      threads.emplace_back([&, b, g] { exact_group(s, qkv, dy, b, g, out); });
    }
  }
  for (std::thread& thread : threads) thread.join();
  return out;
}

// ---- the device ---------------------------------------------------------------------------------

constexpr std::size_t kGuard = 4096;  // bytes after every buffer that nobody may touch

struct Buffer {
  unsigned char* data = nullptr;
  std::size_t bytes = 0;

  explicit Buffer(std::size_t size) : bytes(size) {
    require_ok(cudaMalloc(&data, bytes + kGuard), "cudaMalloc");
    dirty();
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { cudaFree(data); }
  void dirty() { require_ok(cudaMemset(data, 0xff, bytes + kGuard), "cudaMemset"); }  // NaNs
  std::vector<unsigned char> read() const {
    std::vector<unsigned char> host(bytes + kGuard);
    require_ok(cudaMemcpy(host.data(), data, host.size(), cudaMemcpyDeviceToHost), "read back");
    return host;
  }
};

bool guard_intact(const std::vector<unsigned char>& host) {
  return std::all_of(host.end() - kGuard, host.end(), [](unsigned char c) { return c == 0xff; });
}

/// Rounds to the storage and uploads; `values` become what the device sees.
void upload(Buffer& to, Doubles& values, bool bf16) {
  std::vector<__nv_bfloat16> halves(bf16 ? values.size() : 0);
  std::vector<float> floats(bf16 ? 0 : values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<float>(values[i]);
    if (bf16) halves[i] = __float2bfloat16(x);
    if (!bf16) floats[i] = x;
    values[i] = bf16 ? __bfloat162float(halves[i]) : x;
  }
  const void* from = bf16 ? static_cast<const void*>(halves.data()) : floats.data();
  require_ok(cudaMemcpy(to.data, from, to.bytes, cudaMemcpyHostToDevice), "upload");
}

Doubles numbers(const std::vector<unsigned char>& host, bool bf16) {
  const std::size_t count = (host.size() - kGuard) / (bf16 ? 2 : 4);
  Doubles out(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(bf16 ? reinterpret_cast<char*>(&bits) + 2 : reinterpret_cast<char*>(&bits),
                host.data() + i * (bf16 ? 2 : 4), bf16 ? 2 : 4);
    float x;
    std::memcpy(&x, &bits, 4);
    out[i] = x;
  }
  return out;
}

struct Device {
  Buffer qkv, dy, y, stats, d_qkv, scratch, sums;

  Device(const AttentionShape& s, bool bf16)
      : qkv(s.batch * s.context * s.qkv_cols() * (bf16 ? 2 : 4)),
        dy(s.batch * s.context * s.heads * s.head_size * (bf16 ? 2 : 4)),
        y(dy.bytes),
        stats(s.batch * s.heads * s.context * 4),
        d_qkv(qkv.bytes),
        scratch(cuda::attention_scratch_bytes(s, bf16)),
        sums(s.qkv_cols() * 4) {}
  cuda::ColumnSums column_sums(const AttentionShape& s, bool bf16) const {
    if (!cuda::serves_column_sums(s, bf16)) return {};
    return {reinterpret_cast<float*>(sums.data), false};
  }
  void forward(const AttentionShape& s, bool bf16) {
    cuda::attention_forward(s, qkv.data, y.data, reinterpret_cast<float*>(stats.data), bf16,
                            scratch.data, nullptr);
  }
  void backward(const AttentionShape& s, bool bf16) {
    cuda::attention_backward(s, dy.data, qkv.data, y.data,
                             reinterpret_cast<const float*>(stats.data), d_qkv.data, bf16,
                             scratch.data, nullptr, column_sums(s, bf16));
  }
};

// ---- checks -------------------------------------------------------------------------------------

struct Case {
  std::int64_t B, T, H, G, K;
  AttentionKind kind = AttentionKind::softmax;
  MaskKind mask = MaskKind::causal;
  std::int64_t window = 0;
  float rotary = 0;
  bool bf16 = true;
  AttentionTuning tuning = {};
};

std::string name(const Case& c) {
  static const char* const kinds[] = {"softmax", "none", "linear"};
  static const char* const masks[] = {"causal", "both", "strict"};
  char text[160];
  std::snprintf(
      text, sizeof text, "%-4s %-7s %-6s T%-4lld H%lldG%lld K%-3lld w%-3lld %s%s",
      c.bf16 ? "bf16" : "f32", kinds[static_cast<int>(c.kind)], masks[static_cast<int>(c.mask)],
      static_cast<long long>(c.T), static_cast<long long>(c.H), static_cast<long long>(c.G),
      static_cast<long long>(c.K), static_cast<long long>(c.window), c.rotary > 0 ? "rot" : "   ",
      c.tuning.backward < 0    ? ""
      : c.tuning.backward == 0 ? " pair"
                               : " fused");
  return text;
}

/// Root mean square of the difference over that of `truth`, over columns [from, to) of rows.
double error(const Doubles& got, const Doubles& truth, std::int64_t cols, std::int64_t from,
             std::int64_t to) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const auto column = static_cast<std::int64_t>(i) % cols;
    if (column < from || column >= to) continue;
    difference += (got[i] - truth[i]) * (got[i] - truth[i]);
    size += truth[i] * truth[i];
  }
  return std::sqrt(difference / std::max(size, 1e-30));
}

bool check(const Case& c) {
  AttentionShape s{c.B, c.T, c.H, c.G, c.K, c.kind, c.mask, c.window, 0, c.rotary};
  s.scale = c.kind == AttentionKind::softmax ? 1 / std::sqrt(static_cast<float>(c.K)) : 0.05f;
  attention_tuning() = c.tuning;
  std::mt19937 random(17);
  std::normal_distribution<double> normal;
  Doubles qkv(c.B * c.T * s.qkv_cols()), dy(c.B * c.T * c.H * c.K);
  for (double& x : qkv) x = 1.5 * normal(random);
  for (double& x : dy) x = normal(random);
  Device device(s, c.bf16);
  upload(device.qkv, qkv, c.bf16);
  upload(device.dy, dy, c.bf16);
  const Exact truth = exact(s, qkv, dy);

  std::vector<unsigned char> y[2], stats[2], d_qkv[2], sums[2];
  bool clean = true;
  for (int i = 0; i < 2; ++i) {
    for (Buffer* b : {&device.y, &device.stats, &device.d_qkv, &device.scratch, &device.sums})
      b->dirty();
    device.forward(s, c.bf16);
    device.scratch.dirty();  // backward may not lean on what forward left there
    device.backward(s, c.bf16);
    require_ok(cudaDeviceSynchronize(), name(c).c_str());
    y[i] = device.y.read();
    stats[i] = device.stats.read();
    d_qkv[i] = device.d_qkv.read();
    sums[i] = device.sums.read();
    clean = clean && guard_intact(y[i]) && guard_intact(stats[i]) && guard_intact(d_qkv[i]) &&
            guard_intact(device.scratch.read()) && guard_intact(sums[i]);
  }
  const bool same =
      y[0] == y[1] && stats[0] == stats[1] && d_qkv[0] == d_qkv[1] && sums[0] == sums[1];
  const Doubles got = numbers(d_qkv[0], c.bf16);
  const std::int64_t cols = s.qkv_cols(), k_at = c.H * c.K, v_at = k_at + c.G * c.K;
  const double y_error = error(numbers(y[0], c.bf16), truth.y, 1, 0, 1);
  const double stats_error = error(numbers(stats[0], false), truth.stats, 1, 0, 1);
  const double dq = error(got, truth.d_qkv, cols, 0, k_at);
  const double dk = error(got, truth.d_qkv, cols, k_at, v_at);
  const double dv = error(got, truth.d_qkv, cols, v_at, cols);
  double sq = 0, sv = 0, sk = 0;  // column sums; those of dk are 0 but for rounding
  if (device.column_sums(s, c.bf16).to != nullptr) {
    Doubles columns(cols);
    for (std::size_t i = 0; i < truth.d_qkv.size(); ++i) columns[i % cols] += truth.d_qkv[i];
    const Doubles found = numbers(sums[0], false);
    sq = error(found, columns, cols, 0, k_at);
    sv = error(found, columns, cols, v_at, cols);
    for (std::int64_t i = k_at; i < v_at; ++i) sk = std::max(sk, std::abs(found[i] - columns[i]));
  }
  const double limit = c.bf16 ? 2e-2 : 1e-5;
  bool passed = same && clean;  // a NaN fails every comparison
  for (const double e : {y_error, stats_error, dq, dk, dv, sq, sv, sk})
    passed = passed && e < limit;
  std::printf("%-46s %7.0e %7.0e %7.0e %7.0e %7.0e %7.0e %7.0e  %s%s%s\n", name(c).c_str(), y_error,
              stats_error, dq, dk, dv, sq, sv, passed ? "ok" : "FAIL",
              same ? "" : " not repeatable", clean ? "" : " wrote past the end");
  return passed;
}

/// y and stats only, with where they go wrong.
bool check_forward(const Case& c, bool where) {
  AttentionShape s{c.B, c.T, c.H, c.G, c.K, c.kind, c.mask, c.window, 0, c.rotary};
  s.scale = 1 / std::sqrt(static_cast<float>(c.K));
  attention_tuning() = c.tuning;
  std::mt19937 random(17);
  std::normal_distribution<double> normal;
  Doubles qkv(c.B * c.T * s.qkv_cols()), dy(c.B * c.T * c.H * c.K);
  for (double& x : qkv) x = 2.5 * normal(random);  // weights that differ by far
  Device device(s, c.bf16);
  upload(device.qkv, qkv, c.bf16);
  // Rounding the turned q and k alone moves stats by 1e-3 with such weights.
  round_turned = c.rotary > 0;
  const Exact truth = exact(s, qkv, dy);
  round_turned = false;
  std::vector<unsigned char> y[2], stats[2];
  for (int i = 0; i < 2; ++i) {
    for (Buffer* b : {&device.y, &device.stats, &device.scratch}) b->dirty();
    device.forward(s, c.bf16);
    require_ok(cudaDeviceSynchronize(), name(c).c_str());
    y[i] = device.y.read();
    stats[i] = device.stats.read();
  }
  const bool same = y[0] == y[1] && stats[0] == stats[1];
  const bool clean = guard_intact(y[0]) && guard_intact(stats[0]);
  const Doubles got = numbers(y[0], c.bf16), got_stats = numbers(stats[0], false);
  const double y_error = error(got, truth.y, 1, 0, 1);
  const double stats_error = error(got_stats, truth.stats, 1, 0, 1);
  if (same && clean && y_error < 2e-2 && stats_error < 1e-3) return true;
  std::printf("FAIL %s: y %.1e stats %.1e%s%s\n", name(c).c_str(), y_error, stats_error,
              same ? "" : " not repeatable", clean ? "" : " wrote past the end");
  if (!where) return false;
  int shown = 0;
  for (std::size_t i = 0; i < got.size() && shown < 3; ++i) {
    if (std::abs(got[i] - truth.y[i]) <= 0.1) continue;
    const auto at = static_cast<std::int64_t>(i), row = at / (c.H * c.K);
    std::printf("  y[b%lld t%lld h%lld k%lld] %.4f not %.4f\n", static_cast<long long>(row / c.T),
                static_cast<long long>(row % c.T), static_cast<long long>(at / c.K % c.H),
                static_cast<long long>(at % c.K), got[i], truth.y[i]);
    ++shown;
  }
  std::printf("  rows of 16, head 0, y:");
  for (std::int64_t t = 0; t < std::min<std::int64_t>(c.T, 256); t += 16) {
    double worst = 0;
    for (std::int64_t r = t; r < std::min(t + 16, c.T); ++r) {
      for (std::int64_t k = 0; k < c.K; ++k) {
        const double off = std::abs(got[r * c.H * c.K + k] - truth.y[r * c.H * c.K + k]);
        if (!(off <= worst)) worst = off;
      }
    }
    std::printf(" %.1g", worst);
  }
  std::printf("\n  columns of 8, head 0:");
  for (std::int64_t k = 0; k < c.K; k += 8) {
    double worst = 0;
    for (std::int64_t i = 0; i < c.T * 8; ++i) {
      const std::int64_t at = i / 8 * c.H * c.K + k + i % 8;
      const double off = std::abs(got[at] - truth.y[at]);
      if (!(off <= worst)) worst = off;
    }
    std::printf(" %.1g", worst);
  }
  std::printf("\n");
  return false;
}

/// Shapes whose edges no tile meets, every mask, shared key heads, padded head sizes, and more
/// tiles of queries than blocks run at a time.
std::vector<Case> forward_cases(int variant) {
  using enum AttentionKind;
  using enum MaskKind;
  std::vector<Case> all;
  for (const std::int64_t K : {64, 32, 16, 128, 8, 24, 48, 96}) {
    for (const Case& c : std::vector<Case>{{1, 64, 1, 1, K, softmax, bidirectional},
                                           {2, 128, 2, 2, K},
                                           {1, 65, 2, 1, K, softmax, strict},
                                           {2, 360, 4, 2, K},
                                           {1, 1, 1, 1, K, softmax, strict},
                                           {1, 300, 2, 2, K, softmax, strict, 140},
                                           {1, 200, 4, 1, K, softmax, bidirectional, 50},
                                           {1, 700, 1, 1, K, softmax, causal, 33, 1e4f},
                                           {1, 500, 2, 2, K, softmax, bidirectional},
                                           {2, 1024, 1, 1, K},
                                           {9, 130, 4, 2, K}}) {
      all.push_back(c);
      all.back().tuning.forward = variant;
    }
  }
  return all;
}

std::vector<Case> cases() {
  using enum AttentionKind;
  using enum MaskKind;
  std::vector<Case> all = {
      // f32, generic
      {2, 64, 2, 2, 16, softmax, causal, 0, 0, false},
      {1, 96, 4, 2, 48, softmax, bidirectional, 0, 1e4f, false},
      {1, 256, 2, 1, 64, softmax, strict, 0, 0, false},
      {1, 1024, 1, 1, 64, softmax, causal, 0, 1e4f, false},
      {1, 256, 2, 2, 128, softmax, causal, 70, 0, false},
      {1, 96, 2, 2, 7, softmax, causal, 0, 0, false},
      {1, 96, 2, 1, 200, softmax, causal, 0, 1e4f, false},
      {1, 256, 4, 2, 32, none, causal, 0, 1e4f, false},
      {1, 256, 4, 2, 32, linear, causal, 0, 1e4f, false},
      {1, 96, 2, 2, 64, linear, strict, 40, 0, false},
      // bf16, generic
      {1, 256, 4, 2, 32, none, causal, 0, 0, true},
      {1, 256, 4, 2, 32, linear, bidirectional, 0, 1e4f, true},
      {1, 96, 2, 2, 20, softmax, causal, 0, 1e4f, true},
      // bf16, flash
      {3, 64, 2, 2, 16},
      {2, 96, 2, 2, 16, softmax, strict},
      {1, 2048, 2, 1, 16},
      {2, 64, 4, 2, 32},
      {1, 1024, 2, 2, 32, softmax, causal, 0, 1e4f},
      {1, 256, 2, 2, 32, softmax, bidirectional},
      {2, 64, 1, 1, 64},
      {1, 65, 2, 2, 64, softmax, strict},
      {1, 200, 4, 1, 64, softmax, bidirectional, 50},
      {2, 256, 3, 3, 64},
      {1, 256, 4, 2, 64, softmax, causal, 0, 1e4f},
      {2, 1024, 2, 1, 64},
      {1, 1024, 1, 1, 64, softmax, bidirectional},
      {1, 1024, 2, 2, 64, softmax, causal, 100, 1e4f},
      {1, 2048, 2, 2, 64},
      {1, 96, 2, 2, 48, softmax, causal, 0, 1e4f},
      {1, 256, 2, 1, 24, softmax, strict, 33},
      {1, 1024, 2, 2, 96},
      {1, 64, 2, 1, 128},
      {1, 256, 2, 2, 128, softmax, bidirectional, 0, 1e4f},
      {1, 2048, 1, 1, 128},
  };
  for (int v = 0; v < 2; ++v) {  // every tile shape, on a context that fills none of them
    for (const std::int64_t K : {16, 32, 64}) {
      all.push_back({1, 360, 4, 2, K, softmax, causal, 0, 0, true, {v, v}});
    }
  }
  for (int v = 2; v < 5; ++v) {
    for (const std::int64_t K : {16, 32, 64, 128}) {
      all.push_back({1, 1000, 2, 1, K, softmax, causal, 0, 0, true, {v, -1}});
    }
  }
  for (const Case& c : std::vector<Case>{{2, 64, 1, 1, 64},
                                         {3, 100, 3, 3, 64, softmax, strict, 1},
                                         {2, 700, 2, 2, 40, softmax, strict},
                                         {2, 700, 2, 2, 64, softmax, bidirectional, 130},
                                         {70, 300, 2, 2, 32, softmax, strict},
                                         {1, 65, 2, 2, 64, softmax, strict},
                                         {1, 200, 4, 1, 64, softmax, bidirectional, 50},
                                         {1, 256, 4, 2, 64, softmax, causal, 0, 1e4f},
                                         {1, 300, 2, 2, 64, softmax, strict, 140},
                                         {70, 130, 2, 2, 64},
                                         {1, 96, 2, 2, 48, softmax, causal, 0, 1e4f},
                                         {1, 256, 2, 1, 24, softmax, strict, 33},
                                         {1, 384, 2, 2, 32, softmax, bidirectional},
                                         {1, 1024, 2, 2, 32, softmax, causal, 0, 1e4f},
                                         {2, 1024, 2, 1, 64},
                                         {1, 1024, 1, 1, 64, softmax, bidirectional},
                                         {1, 1024, 2, 2, 64, softmax, causal, 100, 1e4f},
                                         {1, 2048, 2, 2, 64}}) {
    all.push_back(c);
    all.back().tuning = {-1, 1};
  }
  return all;
}

// ---- timings ------------------------------------------------------------------------------------

template <class Run>
double median_ms(Run&& run, Buffer& flush) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  for (int i = 0; i < 13; ++i) {
    cudaMemsetAsync(flush.data, i, flush.bytes, nullptr);
    cudaEventRecord(begin);
    run();
    cudaEventRecord(end);
    require_ok(cudaEventSynchronize(end), "timing");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 3) times.push_back(ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// One line: TFLOP/s of a forward variant over shapes.
void forward_rates(int variant) {
  Buffer flush(256 << 20);
  std::mt19937 random(17);
  std::normal_distribution<double> normal;
  Doubles pool(1 << 20);
  for (double& x : pool) x = normal(random);
  Buffer one(pool.size() * 2);
  upload(one, pool, true);
  std::printf("%4d", variant);
  const std::int64_t shapes[][3] = {{1024, 2, 64}, {1024, 4, 64}, {1024, 8, 64},  {1024, 12, 64},
                                    {1024, 4, 32}, {1024, 8, 16}, {1024, 8, 128}, {256, 2, 64},
                                    {256, 8, 64},  {256, 4, 32},  {256, 8, 16}};
  for (const auto& [T, H, K] : shapes) {
    AttentionShape s{65536 / T, T, H, H, K, AttentionKind::softmax, MaskKind::causal, 0, 0, 0};
    s.scale = 1 / std::sqrt(static_cast<float>(K));
    attention_tuning() = {variant, -1};
    Device device(s, true);
    for (std::size_t at = 0; at < device.qkv.bytes; at += one.bytes) {
      cudaMemcpy(device.qkv.data + at, one.data, std::min(one.bytes, device.qkv.bytes - at),
                 cudaMemcpyDeviceToDevice);
    }
    const double ms = median_ms([&] { device.forward(s, true); }, flush);
    std::printf(" %6.1f", 2.0 * s.batch * H * T * T * K / ms * 1e-9);
    std::fflush(stdout);
  }
  std::printf("\n");
}

void time_case(const Case& c, Buffer& flush, bool print_variants) {
  AttentionShape s{c.B, c.T, c.H, c.G, c.K, c.kind, c.mask, c.window, 0, c.rotary};
  s.scale = 1 / std::sqrt(static_cast<float>(c.K));
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  Doubles pool(1 << 20);
  for (double& x : pool) x = normal(random);
  attention_tuning() = {-1, 1};  // scratch for every kernel
  Device device(s, c.bf16);
  for (Buffer* buffer : {&device.qkv, &device.dy}) {  // the pool over and over
    const std::size_t part = std::min(pool.size() * (c.bf16 ? 2 : 4), buffer->bytes);
    Buffer one(part);
    Doubles values(pool.begin(), pool.begin() + part / (c.bf16 ? 2 : 4));
    upload(one, values, c.bf16);
    for (std::size_t at = 0; at < buffer->bytes; at += part) {
      cudaMemcpy(buffer->data + at, one.data, std::min(part, buffer->bytes - at),
                 cudaMemcpyDeviceToDevice);
    }
  }
  const double flops = 2.0 * c.B * c.H * c.T * c.T * c.K;
  const auto rate = [&](double ms, double factor) { return factor * flops / ms * 1e-9; };
  const auto forward = [&](int v) {
    attention_tuning() = {v, -1};
    return median_ms([&] { device.forward(s, c.bf16); }, flush);
  };
  const auto backward = [&](int v) {
    attention_tuning() = {-1, v};
    return median_ms([&] { device.backward(s, c.bf16); }, flush);
  };
  const double ms_forward = forward(-1), ms_backward = backward(-1);
  std::printf("%-40s forward %8.3f ms %6.1f TFLOP/s   backward %8.3f ms %6.1f TFLOP/s",
              name(c).c_str(), ms_forward, rate(ms_forward, 1), ms_backward,
              rate(ms_backward, 2.5));
  if (c.bf16 && c.K <= 64) {
    std::printf(" (pair %.1f, fused %.1f)", rate(backward(0), 2.5), rate(backward(1), 2.5));
  }
  if (print_variants) {
    std::printf("  forward large %.1f, small %.1f", rate(forward(0), 1), rate(forward(1), 1));
  }
  std::printf("\n");
}

void timings() {
  Buffer flush(256 << 20);
  const auto tokens = [](std::int64_t T) { return 65536 / T; };
  for (const std::int64_t T : {1024, 256}) {
    for (const std::int64_t H : {2, 4, 8, 12, 16}) {
      time_case({tokens(T), T, H, H, 64}, flush, H == 2 || H == 12);
    }
  }
  for (const std::int64_t T : {1024, 256}) {
    time_case({tokens(T), T, 4, 4, 32}, flush, true);
    time_case({tokens(T), T, 8, 8, 16}, flush, true);
    time_case({tokens(T), T, 8, 8, 128}, flush, false);
  }
  Case rotary{tokens(1024), 1024, 8, 2, 64};
  rotary.rotary = 1e4f;
  time_case(rotary, flush, false);
  Case exact_mode{8, 1024, 8, 8, 64};
  exact_mode.bf16 = false;
  time_case(exact_mode, flush, false);
}

}  // namespace

int main(int count, char** words) {
  cudaDeviceProp device{};
  require_ok(cudaGetDeviceProperties(&device, 0), "no CUDA device");
  if (count == 3) {  // check or rate, and a variant of the forward kernel
    const int variant = std::atoi(words[2]);
    if (std::string(words[1]) == "rate") return forward_rates(variant), 0;
    int failed = 0;
    for (const Case& c : forward_cases(variant)) {
      if (failed < 12 && !check_forward(c, failed < 2)) ++failed;
    }
    std::printf("variant %d: %d of %zu cases failed\n", variant, failed,
                forward_cases(variant).size());
    return failed == 0 ? 0 : 1;
  }
  std::printf("%s, %d multiprocessors\n%-46s %7s %7s %7s %7s %7s %7s %7s\n", device.name,
              device.multiProcessorCount, "case", "y", "stats", "dq", "dk", "dv", "sum dq",
              "sum dv");
  int failed = 0;
  for (const Case& c : cases()) failed += check(c) ? 0 : 1;
  std::printf("%d of %zu cases failed\n", failed, cases().size());
  timings();
  return failed == 0 ? 0 : 1;
}
