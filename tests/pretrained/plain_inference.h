// engine::Inference in plain loops over the host's memory: the truth for the CUDA module's, and a
// device to test the rest with where there is no GPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/cuda/inference.h"

namespace fathom::pretrained {

using engine::DeviceMatrix;
using engine::NormShape;
using engine::RowActivation;
using engine::SequenceShape;

class PlainMatrix final : public DeviceMatrix {
 public:
  PlainMatrix(const float* values, std::int64_t rows, std::int64_t cols)
      : DeviceMatrix(rows, cols), values_(values, values + rows * cols) {}
  float at(std::int64_t r, std::int64_t c) const {
    return values_[static_cast<std::size_t>(r * cols() + c)];
  }

 private:
  std::vector<float> values_;
};

class PlainInference final : public engine::Inference {
 public:
  /// `pretended`: free memory as this device tells it.
  explicit PlainInference(std::int64_t pretended = std::int64_t{1} << 30) : pretended_(pretended) {}

  void* allocate(std::int64_t bytes) override {
    return std::calloc(static_cast<std::size_t>(std::max<std::int64_t>(1, bytes)), 1);
  }
  void release(void* memory) noexcept override { std::free(memory); }
  std::int64_t free_bytes() const override { return pretended_; }
  void upload(const void* host, std::int64_t bytes, void* to) override { copy(host, bytes, to); }
  void download(const void* from, std::int64_t bytes, void* host) override {
    copy(from, bytes, host);
  }
  void copy(const void* from, std::int64_t bytes, void* to) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  std::unique_ptr<DeviceMatrix> matrix(const float* host, std::int64_t rows,
                                       std::int64_t cols) override {
    ++matrices_;
    return std::make_unique<PlainMatrix>(host, rows, cols);
  }
  std::int64_t matrix_bytes() const override { return 4; }
  int matrices_sent() const { return matrices_; }

  void multiply(const float* x, std::int64_t rows, const DeviceMatrix& w, const float* bias,
                float* y) override {
    const auto& own = static_cast<const PlainMatrix&>(w);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t o = 0; o < w.rows(); ++o) {
        double sum = bias == nullptr ? 0 : bias[o];
        for (std::int64_t i = 0; i < w.cols(); ++i) {
          sum += static_cast<double>(x[r * w.cols() + i]) * own.at(o, i);
        }
        y[r * w.rows() + o] = static_cast<float>(sum);
      }
    }
  }

  void normalise(const NormShape& s, const float* x, const float* gain, const float* bias,
                 float* y) override {
    for (std::int64_t part = 0; part < s.rows * s.parts; ++part) {
      const std::int64_t begin = part / s.parts * s.stride + part % s.parts * s.size;
      double mean = 0, square = 0;
      for (std::int64_t i = 0; s.centred && i < s.size; ++i) mean += x[begin + i];
      mean /= static_cast<double>(s.size);
      for (std::int64_t i = 0; i < s.size; ++i) square += std::pow(x[begin + i] - mean, 2);
      const double root = std::sqrt(square / static_cast<double>(s.size) + s.epsilon);
      for (std::int64_t i = 0; i < s.size; ++i) {
        const double value = (x[begin + i] - mean) / root * gain[i];
        y[begin + i] = static_cast<float>(value + (bias == nullptr ? 0 : bias[i]));
      }
    }
  }

  void rotate(const SequenceShape& s, std::int64_t half, const float* cosines, const float* sines,
              float* qkv) override {
    for (std::int64_t row = 0; row < s.rows(); ++row) {
      for (std::int64_t head = 0; head < s.heads + s.key_heads; ++head) {
        float* x = qkv + row * s.stride() + head * s.head_size;
        for (std::int64_t j = 0; j < half; ++j) {
          const double a = x[j], b = x[j + half], c = cosines[row % s.tokens * half + j],
                       t = sines[row % s.tokens * half + j];
          x[j] = static_cast<float>(a * c - b * t);
          x[j + half] = static_cast<float>(b * c + a * t);
        }
      }
    }
  }

  void attend(const SequenceShape& s, const float* qkv, float* out) override {
    for (std::int64_t w = 0; w < s.sequences; ++w) {
      const float* own = qkv + w * s.tokens * s.stride();
      for (std::int64_t head = 0; head < s.heads; ++head) {
        const std::int64_t group = head * s.key_heads / s.heads;
        for (std::int64_t i = 0; i < s.tokens; ++i) {
          const std::vector<double> weights = row_weights(s, head, own, i);
          for (std::int64_t d = 0; d < s.head_size; ++d) {
            double sum = 0;
            for (std::int64_t j = 0; j < s.tokens; ++j) {
              sum += weights[static_cast<std::size_t>(j)] *
                     own[j * s.stride() + (s.heads + s.key_heads + group) * s.head_size + d];
            }
            out[((w * s.tokens + i) * s.heads + head) * s.head_size + d] = static_cast<float>(sum);
          }
        }
      }
    }
  }

  void attention_weights(const SequenceShape& s, std::int64_t head, const float* qkv,
                         float* weights) override {
    for (std::int64_t i = 0; i < s.tokens; ++i) {
      const std::vector<double> row = row_weights(s, head, qkv, i);
      std::transform(row.begin(), row.end(), weights + i * s.tokens,
                     [](double x) { return static_cast<float>(x); });
    }
  }

  void set_columns(std::int64_t rows, std::int64_t stride, std::int64_t begin, std::int64_t size,
                   const float* values, float* x) override {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < size; ++i) {
        x[r * stride + begin + i] = values == nullptr ? 0 : values[i];
      }
    }
  }

  void activate(const float* u, std::int64_t rows, std::int64_t ffn, RowActivation kind, bool gated,
                float* y) override {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < ffn; ++i) {
        const float* from = u + r * (gated ? 2 : 1) * ffn + i;
        y[r * ffn + i] = static_cast<float>(activation(*from, kind) * (gated ? from[ffn] : 1));
      }
    }
  }

  void add_scaled(float* x, const float* y, std::int64_t count, float scale) override {
    for (std::int64_t i = 0; i < count; ++i) x[i] += scale * y[i];
  }
  void add_bias(float* x, std::int64_t rows, std::int64_t size, const float* bias) override {
    for (std::int64_t i = 0; i < rows * size; ++i) x[i] += bias[i % size];
  }
  void scale_and_cap(float* x, std::int64_t count, float scale, float cap) override {
    for (std::int64_t i = 0; i < count; ++i) {
      x[i] *= scale;
      if (cap > 0) x[i] = cap * std::tanh(x[i] / cap);
    }
  }
  void losses(const float* logits, std::int64_t rows, std::int64_t vocab,
              const std::int32_t* targets, float* out) override {
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* x = logits + r * vocab;
      const double top = *std::max_element(x, x + vocab);
      double sum = 0;
      for (std::int64_t i = 0; i < vocab; ++i) sum += std::exp(x[i] - top);
      out[r] = targets[r] < 0 ? 0 : static_cast<float>(top + std::log(sum) - x[targets[r]]);
    }
  }

 private:
  static double activation(double u, RowActivation kind) {
    switch (kind) {
      case RowActivation::relu:
        return std::max(u, 0.0);
      case RowActivation::gelu:
        return u / 2 * (1 + std::erf(u / std::sqrt(2.0)));
      case RowActivation::gelu_tanh:
        return u / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u)));
      case RowActivation::silu:
        return u / (1 + std::exp(-u));
      case RowActivation::identity:
        break;
    }
    return u;
  }

  static std::vector<double> row_weights(const SequenceShape& s, std::int64_t head,
                                         const float* qkv, std::int64_t i) {
    std::vector<double> weights(static_cast<std::size_t>(s.tokens));
    const std::int64_t group = head * s.key_heads / s.heads;
    const std::int64_t last = s.causal ? i : s.tokens - 1;
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::int64_t j = 0; j <= last; ++j) {
      if (s.window > 0 && j < i - s.window + 1) continue;
      double score = 0;
      for (std::int64_t d = 0; d < s.head_size; ++d) {
        score += static_cast<double>(qkv[i * s.stride() + head * s.head_size + d]) *
                 qkv[j * s.stride() + (s.heads + group) * s.head_size + d];
      }
      score *= s.scale;
      if (s.cap > 0) score = s.cap * std::tanh(score / s.cap);
      weights[static_cast<std::size_t>(j)] = score;
      top = std::max(top, score);
    }
    for (std::int64_t j = 0; j <= last; ++j) {
      if (s.window > 0 && j < i - s.window + 1) continue;
      double& weight = weights[static_cast<std::size_t>(j)];
      weight = std::exp(weight - top);
      sum += weight;
    }
    for (double& weight : weights) weight /= sum;
    return weights;
  }

  std::int64_t pretended_;
  int matrices_ = 0;
};

}  // namespace fathom::pretrained
