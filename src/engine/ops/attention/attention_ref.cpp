#include <algorithm>
#include <cmath>

#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {
namespace {

/// One head of one sequence: its queries, keys and values as the weights see them.
struct Head {
  std::vector<double> q, k, v;  // [T, K]; rotated or mapped already
};

void rotate(const AttentionShape& s, std::int64_t t, double* x, double direction) {
  const std::int64_t half = s.head_size / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double angle = direction * static_cast<double>(t) *
                         std::pow(static_cast<double>(s.rotary_base),
                                  -2.0 * static_cast<double>(i) / static_cast<double>(s.head_size));
    const double a = x[i], b = x[i + half];
    x[i] = a * std::cos(angle) - b * std::sin(angle);
    x[i + half] = a * std::sin(angle) + b * std::cos(angle);
  }
}

double feature(double x) {
  return x > 0 ? x + 1 : std::exp(x);
}
double feature_slope(double x) {
  return x > 0 ? 1 : std::exp(x);
}

struct Columns {
  std::int64_t q, k, v;
};

Columns columns(const AttentionShape& s, std::int64_t h) {
  const std::int64_t g = h * s.key_heads / s.heads;
  return {h * s.head_size, (s.heads + g) * s.head_size, (s.heads + s.key_heads + g) * s.head_size};
}

Head gather(const AttentionShape& s, const double* qkv, std::int64_t b, std::int64_t h) {
  Head head;
  const Columns at = columns(s, h);
  const auto fill = [&](std::vector<double>& out, std::int64_t column, bool rotated) {
    out.resize(static_cast<std::size_t>(s.context * s.head_size));
    for (std::int64_t t = 0; t < s.context; ++t) {
      const double* row = qkv + (b * s.context + t) * s.qkv_cols() + column;
      double* target = out.data() + t * s.head_size;
      std::copy(row, row + s.head_size, target);
      if (rotated && s.rotary_base > 0) rotate(s, t, target, 1);
      for (std::int64_t c = 0; rotated && s.kind == AttentionKind::linear && c < s.head_size; ++c) {
        target[c] = feature(target[c]);
      }
    }
  };
  fill(head.q, at.q, true);
  fill(head.k, at.k, true);
  fill(head.v, at.v, false);
  return head;
}

double dot(const double* a, const double* b, std::int64_t size) {
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

double score(const AttentionShape& s, const Head& head, std::int64_t i, std::int64_t j) {
  const double unscaled = dot(&head.q[static_cast<std::size_t>(i * s.head_size)],
                              &head.k[static_cast<std::size_t>(j * s.head_size)], s.head_size);
  return s.kind == AttentionKind::linear ? unscaled : s.scale * unscaled;
}

double weight(const AttentionShape& s, double score, double stat) {
  if (s.kind == AttentionKind::softmax) return std::exp(score - stat);
  if (s.kind == AttentionKind::linear) return score / stat;
  return score;
}

double statistic(const AttentionShape& s, const Head& head, std::int64_t i) {
  double top = -1e300, sum = 0;
  bool any = false;
  for (std::int64_t j = 0; j < s.context; ++j) {
    if (!s.allows(i, j)) continue;
    any = true;
    top = std::max(top, score(s, head, i, j));
  }
  if (!any || s.kind == AttentionKind::none) return 0;
  for (std::int64_t j = 0; j < s.context; ++j) {
    if (!s.allows(i, j)) continue;
    const double value = score(s, head, i, j);
    sum += s.kind == AttentionKind::softmax ? std::exp(value - top) : value;
  }
  return s.kind == AttentionKind::softmax ? top + std::log(sum) : sum;
}

}  // namespace

void run(const Attention& op, const Context& context) {
  const AttentionShape& s = op.shape;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const Head head = gather(s, context.data(op.qkv), b, h);
      for (std::int64_t i = 0; i < s.context; ++i) {
        const double stat = statistic(s, head, i);
        context.data(op.stats)[(b * s.heads + h) * s.context + i] = stat;
        double* y = context.data(op.y) + ((b * s.context + i) * s.heads + h) * s.head_size;
        std::fill(y, y + s.head_size, 0.0);
        for (std::int64_t j = 0; j < s.context; ++j) {
          if (!s.allows(i, j)) continue;
          const double a = weight(s, score(s, head, i, j), stat);
          for (std::int64_t c = 0; c < s.head_size; ++c) {
            y[c] += a * head.v[static_cast<std::size_t>(j * s.head_size + c)];
          }
        }
      }
    }
  }
}

void run(const AttentionBackward& op, const Context& context) {
  const AttentionShape& s = op.shape;
  const std::int64_t size = s.head_size;
  const double* qkv = context.data(op.qkv);
  double* d_qkv = context.data(op.d_qkv);
  std::fill(d_qkv, d_qkv + context.tensor(op.d_qkv).size(), 0.0);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const Head head = gather(s, qkv, b, h);
      const Columns at = columns(s, h);
      std::vector<double> dq(head.q.size()), dk(head.k.size());
      for (std::int64_t i = 0; i < s.context; ++i) {
        const std::int64_t row = ((b * s.context + i) * s.heads + h) * size;
        const double* dy = context.data(op.dy) + row;
        const double delta = dot(dy, context.data(op.y) + row, size);
        const double stat = context.data(op.stats)[(b * s.heads + h) * s.context + i];
        for (std::int64_t j = 0; j < s.context; ++j) {
          if (!s.allows(i, j)) continue;
          const double a = weight(s, score(s, head, i, j), stat);
          const double p = dot(dy, &head.v[static_cast<std::size_t>(j * size)], size);
          double ds = s.scale * p;
          if (s.kind == AttentionKind::softmax) ds = s.scale * a * (p - delta);
          if (s.kind == AttentionKind::linear) ds = (p - delta) / stat;
          for (std::int64_t c = 0; c < size; ++c) {
            const auto qi = static_cast<std::size_t>(i * size + c);
            const auto kj = static_cast<std::size_t>(j * size + c);
            dq[qi] += ds * head.k[kj];
            dk[kj] += ds * head.q[qi];
            d_qkv[(b * s.context + j) * s.qkv_cols() + at.v + c] += a * dy[c];
          }
        }
      }
      for (std::int64_t t = 0; t < s.context; ++t) {
        const std::int64_t row = (b * s.context + t) * s.qkv_cols();
        const auto scatter = [&](std::vector<double>& gradient, std::int64_t column) {
          double* d = &gradient[static_cast<std::size_t>(t * size)];
          std::vector<double> raw(qkv + row + column, qkv + row + column + size);
          if (s.rotary_base > 0) rotate(s, t, raw.data(), 1);
          for (std::int64_t c = 0; s.kind == AttentionKind::linear && c < size; ++c) {
            d[c] *= feature_slope(raw[static_cast<std::size_t>(c)]);
          }
          if (s.rotary_base > 0) rotate(s, t, d, -1);
          for (std::int64_t c = 0; c < size; ++c) d_qkv[row + column + c] += d[c];
        };
        scatter(dq, at.q);
        scatter(dk, at.k);
      }
    }
  }
}

}  // namespace fathom::engine::ref
