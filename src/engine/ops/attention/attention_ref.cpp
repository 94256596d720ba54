#include <algorithm>
#include <cmath>

#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {
namespace {

constexpr double kNormEpsilon = 1e-5;

struct Columns {
  std::int64_t q, k, v;
};

Columns columns(const AttentionShape& s, std::int64_t h) {
  const std::int64_t g = h * s.key_heads / s.heads;
  return {h * s.head_size, (s.heads + g) * s.head_size, (s.heads + s.key_heads + g) * s.head_size};
}

double dot(const double* a, const double* b, std::int64_t size) {
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

/// One row of queries or keys as the weights see it, and back.
class RowMap {
 public:
  explicit RowMap(const AttentionShape& shape) : s_(shape), size_(shape.head_size) {
    if (s_.kind != AttentionKind::performer) return;
    for (const float w : feature_directions(s_)) {
      directions_.push_back(std::sqrt(static_cast<double>(s_.scale)) * w);
    }
  }

  std::vector<double> forward(std::int64_t t, const double* row) const {
    std::vector<double> x = rotated(t, row);
    if (!s_.has_features()) return x;
    std::vector<double> f(static_cast<std::size_t>(s_.feature_size()));
    for (std::size_t m = 0; m < f.size(); ++m) {
      f[m] = x[m % x.size()] > 0 ? x[m % x.size()] + 1 : std::exp(x[m % x.size()]);
      if (s_.kind == AttentionKind::performer) {
        f[m] = std::exp(dot(direction(m), x.data(), size_) -
                        s_.scale * dot(x.data(), x.data(), size_) / 2);
      }
    }
    return f;
  }

  /// Adds the gradient of the raw row, from df of the mapped one.
  void backward(std::int64_t t, const double* row, const double* df, double* d_row) const {
    const std::vector<double> x = rotated(t, row), f = forward(t, row);
    std::vector<double> dx(df, df + size_ * (s_.kind == AttentionKind::performer ? 0 : 1));
    dx.resize(x.size());
    for (std::size_t c = 0; s_.kind == AttentionKind::linear && c < dx.size(); ++c) {
      dx[c] *= x[c] > 0 ? 1 : std::exp(x[c]);
    }
    for (std::size_t m = 0; s_.kind == AttentionKind::performer && m < f.size(); ++m) {
      for (std::size_t c = 0; c < dx.size(); ++c) {
        dx[c] += df[m] * f[m] * (direction(m)[c] - s_.scale * x[c]);
      }
    }
    if (s_.rotary_base > 0) rotate(t, dx.data(), -1);
    for (std::size_t c = 0; c < dx.size(); ++c) d_row[c] += dx[c];
  }

 private:
  const double* direction(std::size_t m) const {
    return directions_.data() + m * static_cast<std::size_t>(size_);
  }

  std::vector<double> rotated(std::int64_t t, const double* row) const {
    std::vector<double> x(row, row + size_);
    if (s_.rotary_base > 0) rotate(t, x.data(), 1);
    return x;
  }

  void rotate(std::int64_t t, double* x, double direction) const {
    const std::int64_t half = size_ / 2;
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = direction * static_cast<double>(t) *
                           std::pow(static_cast<double>(s_.rotary_base),
                                    -2.0 * static_cast<double>(i) / static_cast<double>(size_));
      const double a = x[i], b = x[i + half];
      x[i] = a * std::cos(angle) - b * std::sin(angle);
      x[i + half] = a * std::sin(angle) + b * std::cos(angle);
    }
  }

  const AttentionShape& s_;
  std::int64_t size_;
  std::vector<double> directions_;  // times sqrt(scale)
};

/// The keys that each query sees.
std::vector<std::vector<std::int64_t>> visible_keys(const AttentionShape& s) {
  std::vector<std::vector<std::int64_t>> keys(static_cast<std::size_t>(s.context));
  for (std::int64_t i = 0; i < s.context; ++i) {
    for (std::int64_t j = 0; j < s.context; ++j) {
      if (s.allows(i, j)) keys[static_cast<std::size_t>(i)].push_back(j);
    }
  }
  return keys;
}

/// One head of one sequence: its queries, keys and values as the weights see them.
struct Head {
  const AttentionShape& s;
  std::vector<std::vector<double>> q, k, v;  // by position

  Head(const AttentionShape& shape, const RowMap& map, const double* qkv, std::int64_t b,
       std::int64_t h)
      : s(shape) {
    const Columns at = columns(s, h);
    for (std::int64_t t = 0; t < s.context; ++t) {
      const double* row = qkv + (b * s.context + t) * s.qkv_cols();
      q.push_back(map.forward(t, row + at.q));
      k.push_back(map.forward(t, row + at.k));
      v.emplace_back(row + at.v, row + at.v + s.head_size);
    }
  }

  double score(std::int64_t i, std::int64_t j) const {
    const double unscaled = dot(q[as(i)].data(), k[as(j)].data(), s.feature_size());
    return s.has_features() ? unscaled : s.scale * unscaled;
  }
  static std::size_t as(std::int64_t i) { return static_cast<std::size_t>(i); }
};

void write_statistics(const Head& head, std::int64_t i, const std::vector<std::int64_t>& keys,
                      double* stats) {
  const AttentionKind kind = head.s.kind;
  std::fill(stats, stats + head.s.stats_of_row(), 0.0);
  if (keys.empty() || kind == AttentionKind::none) return;
  double top = -1e300, sum = 0, square = 0;
  for (const std::int64_t j : keys) top = std::max(top, head.score(i, j));
  for (const std::int64_t j : keys) {
    const double score = head.score(i, j);
    sum += kind == AttentionKind::softmax ? std::exp(score - top) : score;
  }
  stats[0] = kind == AttentionKind::softmax ? top + std::log(sum) : sum;
  if (kind != AttentionKind::normalised) return;
  const auto count = static_cast<double>(keys.size());
  stats[0] = sum / count;
  for (const std::int64_t j : keys) square += std::pow(head.score(i, j) - stats[0], 2) / count;
  stats[1] = 1 / std::sqrt(square + kNormEpsilon);
  stats[2] = count;
}

double weight(const AttentionShape& s, double score, const double* stats) {
  if (s.kind == AttentionKind::softmax) return std::exp(score - stats[0]);
  if (s.kind == AttentionKind::normalised) return (score - stats[0]) * stats[1];
  return s.has_features() ? score / stats[0] : score;
}

/// The gradient of the unscaled score.
double slope(const AttentionShape& s, double a, double p, double mean_p, double delta,
             const double* stats) {
  if (s.kind == AttentionKind::softmax) return s.scale * a * (p - delta);
  if (s.kind == AttentionKind::normalised) {
    return s.scale * stats[1] * (p - mean_p - a * delta / stats[2]);
  }
  return s.has_features() ? (p - delta) / stats[0] : s.scale * p;
}

void backward_row(const Head& head, std::int64_t i, const std::vector<std::int64_t>& keys,
                  const double* stats, const double* y, const double* dy,
                  std::vector<std::vector<double>>& dq, std::vector<std::vector<double>>& dk,
                  std::vector<std::vector<double>>& dv) {
  const AttentionShape& s = head.s;
  const double delta = dot(dy, y, s.head_size);
  double mean_p = 0;
  for (const std::int64_t j : keys) {
    mean_p += dot(dy, head.v[Head::as(j)].data(), s.head_size) / static_cast<double>(keys.size());
  }
  for (const std::int64_t j : keys) {
    const double a = weight(s, head.score(i, j), stats);
    const double p = dot(dy, head.v[Head::as(j)].data(), s.head_size);
    const double ds = slope(s, a, p, mean_p, delta, stats);
    for (std::size_t c = 0; c < head.q.front().size(); ++c) {
      dq[Head::as(i)][c] += ds * head.k[Head::as(j)][c];
      dk[Head::as(j)][c] += ds * head.q[Head::as(i)][c];
    }
    for (std::size_t c = 0; c < dv[Head::as(j)].size(); ++c) dv[Head::as(j)][c] += a * dy[c];
  }
}

}  // namespace

void run(const Attention& op, const Context& context) {
  const AttentionShape& s = op.shape;
  const RowMap map(s);
  const auto visible = visible_keys(s);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const Head head(s, map, context.data(op.qkv), b, h);
      for (std::int64_t i = 0; i < s.context; ++i) {
        const std::vector<std::int64_t>& keys = visible[Head::as(i)];
        double* stats =
            context.data(op.stats) + ((b * s.heads + h) * s.context + i) * s.stats_of_row();
        write_statistics(head, i, keys, stats);
        double* y = context.data(op.y) + ((b * s.context + i) * s.heads + h) * s.head_size;
        std::fill(y, y + s.head_size, 0.0);
        for (const std::int64_t j : keys) {
          const double a = weight(s, head.score(i, j), stats);
          for (std::int64_t c = 0; c < s.head_size; ++c)
            y[c] += a * head.v[Head::as(j)][Head::as(c)];
        }
      }
    }
  }
}

void run(const AttentionBackward& op, const Context& context) {
  const AttentionShape& s = op.shape;
  const RowMap map(s);
  const auto visible = visible_keys(s);
  const double* qkv = context.data(op.qkv);
  double* d_qkv = context.data(op.d_qkv);
  std::fill(d_qkv, d_qkv + context.tensor(op.d_qkv).size(), 0.0);
  const auto rows = static_cast<std::size_t>(s.context);
  const std::vector<double> feature_row(static_cast<std::size_t>(s.feature_size()));
  const std::vector<double> value_row(static_cast<std::size_t>(s.head_size));
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const Head head(s, map, qkv, b, h);
      const Columns at = columns(s, h);
      std::vector<std::vector<double>> dq(rows, feature_row), dk = dq, dv(rows, value_row);
      for (std::int64_t i = 0; i < s.context; ++i) {
        const std::int64_t row = ((b * s.context + i) * s.heads + h) * s.head_size;
        const double* stats =
            context.data(op.stats) + ((b * s.heads + h) * s.context + i) * s.stats_of_row();
        backward_row(head, i, visible[Head::as(i)], stats, context.data(op.y) + row,
                     context.data(op.dy) + row, dq, dk, dv);
      }
      for (std::int64_t t = 0; t < s.context; ++t) {
        const std::int64_t row = (b * s.context + t) * s.qkv_cols();
        map.backward(t, qkv + row + at.q, dq[Head::as(t)].data(), d_qkv + row + at.q);
        map.backward(t, qkv + row + at.k, dk[Head::as(t)].data(), d_qkv + row + at.k);
        for (std::int64_t c = 0; c < s.head_size; ++c) {
          d_qkv[row + at.v + c] += dv[Head::as(t)][Head::as(c)];
        }
      }
    }
  }
}

}  // namespace fathom::engine::ref
