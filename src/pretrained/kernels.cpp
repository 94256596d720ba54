#include "pretrained/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <dnnl.hpp>

#include "core/error.h"

// Loops over floats are compiled for the widest vectors this machine may have; chosen at load time.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FATHOM_VECTOR_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FATHOM_VECTOR_CLONES
#endif

namespace fathom::pretrained {
namespace {

void gemm(bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float scale,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c,
          std::int64_t ldc) {
  const dnnl::status status =
      dnnl::sgemm('N', transpose_b ? 'T' : 'N', m, n, k, scale, a, lda, b, ldb, 0, c, ldc);
  if (status != dnnl::status::success) throw InternalError("oneDNN refused a matrix product");
}

/// e^x to about one unit in the last place, in a form that compilers vectorise (Cephes' expf).
inline float exponential(float x) {
  x = std::min(std::max(x, -87.0f), 88.0f);
  constexpr float kRound = 12582912.0f;  // 1.5 2^23: adding it rounds to a whole number
  const float n = (x * 1.44269504088896341f + kRound) - kRound;
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1;
  // NaN stays NaN through p; it has no value as an integer, so n is replaced by -127.
  return p * std::bit_cast<float>((static_cast<std::int32_t>(std::max(-127.0f, n)) + 127) << 23);
}

FATHOM_VECTOR_CLONES
void silu(const float* u, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = u[i] / (1 + exponential(-u[i]));
}

FATHOM_VECTOR_CLONES
void gelu_tanh(const float* u, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float z = 0.7978845608028654f * (u[i] + 0.044715f * u[i] * u[i] * u[i]);
    y[i] = u[i] / (1 + exponential(-2 * z));  // (1 + tanh z) / 2 is the logistic of 2 z
  }
}

void gelu(const float* u, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = 0.5f * u[i] * (1 + std::erf(u[i] * 0.7071067811865476f));
  }
}

void apply(const float* u, std::int64_t count, Activation kind, float* y) {
  switch (kind) {
    case Activation::silu:
      return silu(u, count, y);
    case Activation::gelu_tanh:
      return gelu_tanh(u, count, y);
    case Activation::gelu:
      return gelu(u, count, y);
    case Activation::relu:
      for (std::int64_t i = 0; i < count; ++i) y[i] = std::max(u[i], 0.0f);
      return;
    case Activation::identity:
      std::copy_n(u, count, y);
  }
}

FATHOM_VECTOR_CLONES
float exponentiate(float* x, std::int64_t count, float top) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = exponential(x[i] - top);
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += x[i];
  return sum;
}

FATHOM_VECTOR_CLONES
double sum_of_exponentials(const float* x, std::int64_t count, float top) {
  constexpr std::int64_t kBlock = 256;  // f32 sums of a few hundred terms, added up in f64
  double total = 0;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t end = std::min(count, begin + kBlock);
    float terms[kBlock];
    for (std::int64_t i = begin; i < end; ++i) terms[i - begin] = exponential(x[i] - top);
    float sum = 0;
    for (std::int64_t i = 0; i < end - begin; ++i) sum += terms[i];
    total += sum;
  }
  return total;
}

}  // namespace

void multiply(const float* x, std::int64_t rows, const Matrix& w, const Vector& bias, float* y) {
  gemm(true, rows, w.rows, w.cols, 1, x, w.cols, w.values.data(), w.cols, y, w.rows);
  if (bias.empty()) return;
  for (std::int64_t r = 0; r < rows; ++r) add_scaled(y + r * w.rows, bias.data(), w.rows, 1);
}

void multiply_strided(std::int64_t m, std::int64_t n, std::int64_t k, float scale, const float* a,
                      std::int64_t a_stride, const float* b, std::int64_t b_stride, bool transposed,
                      float* c, std::int64_t c_stride) {
  gemm(transposed, m, n, k, scale, a, a_stride, b, b_stride, c, c_stride);
}

void normalise(const float* x, std::int64_t rows, std::int64_t size, NormKind kind, double epsilon,
               const NormWeights& weights, float* y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* in = x + r * size;
    float* out = y + r * size;
    double mean = 0, square = 0;
    if (kind == NormKind::layer) {
      for (std::int64_t i = 0; i < size; ++i) mean += in[i];
      mean /= static_cast<double>(size);
    }
    for (std::int64_t i = 0; i < size; ++i) square += (in[i] - mean) * (in[i] - mean);
    const double inverse = 1 / std::sqrt(square / static_cast<double>(size) + epsilon);
    const auto m = static_cast<float>(mean), s = static_cast<float>(inverse);
    for (std::int64_t i = 0; i < size; ++i) {
      out[i] = (in[i] - m) * s * weights.gain[static_cast<std::size_t>(i)];
    }
    if (!weights.bias.empty()) add_scaled(out, weights.bias.data(), size, 1);
  }
}

void activate(const float* u, std::int64_t rows, std::int64_t ffn, Activation kind, bool gated,
              float* y) {
  if (!gated) return apply(u, rows * ffn, kind, y);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* gate = u + 2 * r * ffn;
    float* out = y + r * ffn;
    apply(gate, ffn, kind, out);
    for (std::int64_t i = 0; i < ffn; ++i) out[i] *= gate[ffn + i];
  }
}

void softmax_row(float* row, std::int64_t size, std::int64_t first, std::int64_t last, float cap) {
  std::fill(row, row + first, 0.0f);
  std::fill(row + last + 1, row + size, 0.0f);
  float* seen = row + first;
  const std::int64_t count = last - first + 1;
  if (cap > 0) {
    for (std::int64_t j = 0; j < count; ++j) seen[j] = cap * std::tanh(seen[j] / cap);
  }
  const float sum = exponentiate(seen, count, *std::max_element(seen, seen + count));
  for (std::int64_t j = 0; j < count; ++j) seen[j] /= sum;
}

void add_scaled(float* x, const float* y, std::int64_t count, float scale) {
  for (std::int64_t i = 0; i < count; ++i) x[i] += scale * y[i];
}

double log_sum_exp(const float* x, std::int64_t count) {
  const float top = *std::max_element(x, x + count);
  return static_cast<double>(top) + std::log(sum_of_exponentials(x, count, top));
}

}  // namespace fathom::pretrained
