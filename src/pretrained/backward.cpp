#include "pretrained/backward.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/counts.h"
#include "pretrained/gradients.h"

namespace fathom::pretrained {
namespace {

using Floats = std::vector<float>;

Floats floats(std::int64_t count) {
  return Floats(as_size(count), 0.0f);
}

Floats transposed(const Floats& square, std::int64_t size) {
  Floats result(square.size());
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = 0; j < size; ++j) {
      result[as_size(j * size + i)] = square[as_size(i * size + j)];
    }
  }
  return result;
}

}  // namespace

/// One half of a layer: its norms and its branch, forward and backward.
struct Backward::Half {
  const NormWeights &before, &after;
  std::function<void(const float* x, float* y)> branch;
  std::function<void(const float* x, const float* dy, float* dx)> gradient;
};

void Backward::half(const Half& half, const float* stream, float* gradient) const {
  const std::int64_t T = forward_.tokens(), D = layout_.width, count = T * D;
  const bool post = layout_.block == Block::post;
  const auto through = [&](const NormWeights& norm, const float* x, float* g) {
    norm_gradient(x, T, D, layout_.norm, layout_.epsilon, norm.gain, g);
  };
  Floats x(stream, stream + count), dx = floats(count);
  if (half.before.exists()) forward_.norm(half.before, stream, x.data());
  Floats y = floats(half.after.exists() ? count : 0);
  if (half.after.exists()) half.branch(x.data(), y.data());
  if (post && half.after.exists()) {  // norm(stream + branch): the sum passes through the norm
    for (std::int64_t i = 0; i < count; ++i) {
      y[as_size(i)] = stream[i] + layout_.branch_scale * y[as_size(i)];
    }
    through(half.after, y.data(), gradient);
  }
  Floats dy(gradient, gradient + count);
  for (float& g : dy) g *= layout_.branch_scale;
  if (!post && half.after.exists()) through(half.after, y.data(), dy.data());
  half.gradient(x.data(), dy.data(), dx.data());
  if (half.before.exists()) through(half.before, stream, dx.data());
  add_scaled(gradient, dx.data(), count, 1);
}

void Backward::layer(const LayerWeights& layer, std::int64_t index, const float* h, float* gradient,
                     double* gates) const {
  const std::int64_t count = forward_.tokens() * layout_.width;
  Scratch scratch;
  const Half attention_half{
      layer.attention_in, layer.attention_out,
      [&](const float* x, float* y) { forward_.attend(layer, index, x, scratch, {}, {}, y); },
      [&](const float* x, const float* dy, float* dx) {
        attention(layer, index, x, dy, dx, gates);
      }};
  const Half ffn_half{
      layer.ffn_in, layer.ffn_out,
      [&](const float* x, float* y) { forward_.feed_forward(layer, x, scratch, y); },
      [&](const float* x, const float* dy, float* dx) { feed_forward(layer, x, dy, dx); }};
  if (layout_.block == Block::parallel) {
    // Both read h, so their parts add up: g + attention(g) + ffn(g).
    Floats other(gradient, gradient + count);
    const Floats incoming = other;
    half(attention_half, h, gradient);
    half(ffn_half, h, other.data());
    add_scaled(gradient, other.data(), count, 1);
    add_scaled(gradient, incoming.data(), count, -1);
    return;
  }
  Floats middle(h, h + count);
  LayerEdit without_ffn;
  without_ffn.ffn = false;
  forward_.run_layer(layer, index, middle.data(), scratch, without_ffn);
  half(ffn_half, middle.data(), gradient);
  half(attention_half, h, gradient);
}

void Backward::attention(const LayerWeights& layer, std::int64_t index, const float* x,
                         const float* dy, float* dx, double* gates) const {
  const LayerLayout& own = layout_.layers[as_size(index)];
  const std::int64_t T = forward_.tokens(), cols = layout_.qkv_rows();
  const std::int64_t H = layout_.heads, K = layout_.head_size;
  Floats raw = floats(T * cols), d_qkv = floats(T * cols), d_mixed = floats(T * H * K);
  multiply(x, T, layer.qkv, layer.qkv_bias, raw.data());
  Floats qkv = raw;
  forward_.prepare_heads(layer, own, qkv.data());
  input_gradient(dy, T, layer.out, d_mixed.data());
  for (std::int64_t h = 0; h < H; ++h) {
    head(h, own, qkv.data(), d_mixed.data() + h * K, d_qkv.data(), gates);
  }
  if (own.rotary >= 0) unrotate(own.rotary, d_qkv.data());
  if (layout_.qk_norm != QkNorm::none) unnormalise_heads(layer, raw.data(), d_qkv.data());
  input_gradient(d_qkv.data(), T, layer.qkv, dx);
}

void Backward::head(std::int64_t head, const LayerLayout& own, const float* qkv,
                    const float* d_mixed, float* d_qkv, double* gates) const {
  const std::int64_t T = forward_.tokens(), H = layout_.heads, G = layout_.key_heads;
  const std::int64_t K = layout_.head_size, cols = layout_.qkv_rows(), stride = H * K;
  const std::int64_t group = head * G / H;
  const std::int64_t at_q = head * K, at_k = (H + group) * K, at_v = (H + G + group) * K;
  Floats scores = floats(T * T), slope = floats(T * T), out = floats(T * K), part = floats(T * K);
  multiply_strided(T, T, K, own.scale, qkv + at_q, cols, qkv + at_k, cols, true, scores.data(), T);
  Floats weights = scores;
  for (std::int64_t i = 0; i < T; ++i) forward_.soften(own, i, weights.data());
  multiply_strided(T, K, T, 1, weights.data(), T, qkv + at_v, cols, false, out.data(), K);
  gates[head] = 0;
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t i = 0; i < K; ++i) {
      gates[head] += static_cast<double>(out[as_size(t * K + i)]) * d_mixed[t * stride + i];
    }
  }
  // Of a softmax p: ds_j = p_j (dp_j - sum p dp); a cap c tanh(s / c) has slope 1 - tanh^2.
  multiply_strided(T, T, K, 1, d_mixed, stride, qkv + at_v, cols, true, slope.data(), T);
  for (std::int64_t i = 0; i < T; ++i) {
    const float* p = weights.data() + i * T;
    float* d = slope.data() + i * T;
    double mean = 0;
    for (std::int64_t j = 0; j < T; ++j) mean += static_cast<double>(p[j]) * d[j];
    for (std::int64_t j = 0; j < T; ++j) d[j] = p[j] * (d[j] - static_cast<float>(mean));
    if (layout_.attention_cap > 0) {
      for (std::int64_t j = 0; j < T; ++j) {
        const float t = std::tanh(scores[as_size(i * T + j)] / layout_.attention_cap);
        d[j] *= 1 - t * t;
      }
    }
  }
  const auto add = [&](std::int64_t place) {
    for (std::int64_t t = 0; t < T; ++t) {
      add_scaled(d_qkv + t * cols + place, part.data() + t * K, K, 1);
    }
  };
  multiply_strided(T, K, T, own.scale, slope.data(), T, qkv + at_k, cols, false, part.data(), K);
  add(at_q);
  multiply_strided(T, K, T, own.scale, transposed(slope, T).data(), T, qkv + at_q, cols, false,
                   part.data(), K);
  add(at_k);
  multiply_strided(T, K, T, 1, transposed(weights, T).data(), T, d_mixed, stride, false,
                   part.data(), K);
  add(at_v);
}

void Backward::unrotate(int table, float* d_qkv) const {
  const Forward::Turn& turn = forward_.turns_[static_cast<std::size_t>(table)];
  const std::int64_t half = layout_.rotary[static_cast<std::size_t>(table)].size / 2;
  const std::int64_t K = layout_.head_size, cols = layout_.qkv_rows();
  for (std::int64_t t = 0; t < forward_.tokens(); ++t) {
    const float* c = turn.cosines.data() + t * half;
    const float* s = turn.sines.data() + t * half;
    for (std::int64_t head = 0; head < layout_.heads + layout_.key_heads; ++head) {
      float* d = d_qkv + t * cols + head * K;
      for (std::int64_t j = 0; j < half; ++j) {
        const float a = d[j], b = d[j + half];
        d[j] = a * c[j] + b * s[j];
        d[j + half] = b * c[j] - a * s[j];
      }
    }
  }
}

void Backward::unnormalise_heads(const LayerWeights& layer, const float* raw, float* d_qkv) const {
  const std::int64_t T = forward_.tokens(), cols = layout_.qkv_rows();
  const std::int64_t queries = layout_.heads * layout_.head_size,
                     keys = layout_.key_heads * layout_.head_size;
  const bool whole = layout_.qk_norm == QkNorm::whole;
  for (std::int64_t t = 0; t < T; ++t) {
    const std::int64_t q = t * cols, k = q + queries;
    norm_gradient(raw + q, whole ? 1 : layout_.heads, whole ? queries : layout_.head_size,
                  NormKind::rms, layout_.epsilon, layer.q_norm.gain, d_qkv + q);
    norm_gradient(raw + k, whole ? 1 : layout_.key_heads, whole ? keys : layout_.head_size,
                  NormKind::rms, layout_.epsilon, layer.k_norm.gain, d_qkv + k);
  }
}

void Backward::feed_forward(const LayerWeights& layer, const float* x, const float* dy,
                            float* dx) const {
  const std::int64_t T = forward_.tokens();
  Floats u = floats(T * layer.up.rows), du = floats(T * layer.up.rows),
         d_middle = floats(T * layout_.ffn);
  multiply(x, T, layer.up, layer.up_bias, u.data());
  input_gradient(dy, T, layer.down, d_middle.data());
  activation_gradient(u.data(), d_middle.data(), T, layout_.ffn, layout_.activation, layout_.gated,
                      du.data());
  input_gradient(du.data(), T, layer.up, dx);
}

void Backward::ends(const float* h, std::span<const data::TokenId> targets, float* gradient) const {
  constexpr std::int64_t kRows = 64;  // states whose logits are held at once
  const EndWeights& ends = weights_.ends();
  const std::int64_t D = layout_.width, V = layout_.vocab, E = layout_.embedding_width;
  const auto through = [&](const NormWeights& norm, const float* x, std::int64_t rows, float* g) {
    norm_gradient(x, rows, D, layout_.norm, layout_.epsilon, norm.gain, g);
  };
  Scratch scratch;
  Floats logits = floats(kRows * V), narrow = floats(kRows * E), x = floats(kRows * D),
         dense = floats(kRows * D), active = floats(kRows * D);
  for (std::int64_t begin = 0; begin < std::ssize(targets); begin += kRows) {
    const std::int64_t rows = std::min(kRows, std::ssize(targets) - begin);
    const float* state = h + begin * D;
    float* g = gradient + begin * D;
    forward_.logits(state, rows, scratch, logits.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      const data::TokenId target = targets[as_size(begin + r)];
      float* z = logits.data() + r * V;
      const double total = log_sum_exp(z, V);
      for (std::int64_t v = 0; v < V; ++v) {
        const double slope =
            layout_.final_cap > 0 ? 1 - std::pow(z[v] / layout_.final_cap, 2) : 1.0;
        const double p = std::exp(z[v] - total) - (v == target ? 1 : 0);
        z[v] = target < 0 ? 0 : static_cast<float>(p * slope * layout_.head_scale);
      }
    }
    const Matrix& head = ends.head.exists() ? ends.head : ends.tokens;
    input_gradient(logits.data(), rows, head, narrow.data());
    if (ends.project_out.exists()) {
      input_gradient(narrow.data(), rows, ends.project_out, g);
    } else {
      std::copy_n(narrow.data(), rows * D, g);
    }
    if (ends.masked_dense.exists()) {
      multiply(state, rows, ends.masked_dense, ends.masked_dense_bias, dense.data());
      activate(dense.data(), rows, D, layout_.activation, false, active.data());
      through(ends.masked_norm, active.data(), rows, g);
      activation_gradient(dense.data(), g, rows, D, layout_.activation, false, x.data());
      input_gradient(x.data(), rows, ends.masked_dense, g);
    }
    if (ends.final_norm.exists()) through(ends.final_norm, state, rows, g);
  }
}

}  // namespace fathom::pretrained
