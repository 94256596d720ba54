#include <algorithm>
#include <cmath>

#include "engine/ops/keys/keys_sort.h"
#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {
namespace {

/// One sequence of qkv, or of its gradient.
struct KeyRows {
  const KeyShape& shape;
  double* data;

  double& at(std::int64_t t, std::int64_t column) const {
    return data[t * shape.qkv_cols() + column];
  }
};

KeyRows key_rows(const KeyShape& s, double* data, std::int64_t b) {
  return {s, data + b * s.context * s.qkv_cols()};
}

double share_of(double weight) {
  return 1 / (1 + std::exp(-weight));
}

void smear(const KeyShape& s, const double* weight, const KeyRows& x, const KeyRows& y) {
  for (std::int64_t t = 1; t < s.context; ++t) {
    for (std::int64_t c = 0; c < s.key_heads * s.head_size; ++c) {
      const double share = share_of(weight[c / s.head_size]);
      const std::int64_t column = s.key_column() + c;
      y.at(t, column) = share * x.at(t, column) + (1 - share) * x.at(t - 1, column);
    }
  }
}

void project(const KeyShape& s, const double* weight, std::int64_t rows, const KeyRows& x,
             const KeyRows& y) {
  for (std::int64_t t = 0; t < s.context; ++t) {
    for (std::int64_t column = s.key_column(); column < s.qkv_cols(); ++column) {
      double sum = 0;
      for (std::int64_t u = 0; t < rows && u < s.context; ++u) {
        sum += weight[t * s.context + u] * x.at(u, column);
      }
      y.at(t, column) = sum;
    }
  }
}

void synthesise(const KeyShape& s, const double* weight, const KeyRows& y) {
  for (std::int64_t t = 0; t < s.context; ++t) {
    for (std::int64_t c = 0; c < s.key_column(); ++c) y.at(t, c) = std::max(0.0, y.at(t, c));
    for (std::int64_t c = 0; c < s.key_heads * s.head_size; ++c) {
      y.at(t, s.key_column() + c) = weight[t * s.key_heads * s.head_size + c];
    }
  }
}

void smear_backward(const KeyShape& s, const double* weight, const KeyRows& x, const KeyRows& dy,
                    const KeyRows& dx, double* d_weight) {
  for (std::int64_t t = 0; t < s.context; ++t) {
    for (std::int64_t c = 0; c < s.key_heads * s.head_size; ++c) {
      const double share = share_of(weight[c / s.head_size]);
      const std::int64_t column = s.key_column() + c;
      const double own = (t == 0 ? 1 : share) * dy.at(t, column);
      const double next = t + 1 < s.context ? (1 - share) * dy.at(t + 1, column) : 0;
      dx.at(t, column) = own + next;
      if (t == 0) continue;
      d_weight[c / s.head_size] +=
          share * (1 - share) * dy.at(t, column) * (x.at(t, column) - x.at(t - 1, column));
    }
  }
}

void project_backward(const KeyShape& s, const double* weight, std::int64_t rows, const KeyRows& x,
                      const KeyRows& dy, const KeyRows& dx, double* d_weight) {
  for (std::int64_t t = 0; t < s.context; ++t) {
    for (std::int64_t column = s.key_column(); column < s.qkv_cols(); ++column) {
      double sum = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        sum += weight[r * s.context + t] * dy.at(r, column);
        d_weight[r * s.context + t] += dy.at(r, column) * x.at(t, column);
      }
      dx.at(t, column) = sum;
    }
  }
}

void synthesise_backward(const KeyShape& s, const KeyRows& x, const KeyRows& dy, const KeyRows& dx,
                         double* d_weight) {
  for (std::int64_t t = 0; t < s.context; ++t) {
    for (std::int64_t c = 0; c < s.key_column(); ++c) {
      if (x.at(t, c) <= 0) dx.at(t, c) = 0;
    }
    for (std::int64_t c = 0; c < s.key_heads * s.head_size; ++c) {
      dx.at(t, s.key_column() + c) = 0;
      d_weight[t * s.key_heads * s.head_size + c] += dy.at(t, s.key_column() + c);
    }
  }
}

/// Keys and values of one head, [T, 2 K], out of a sequence or back into it.
std::vector<double> head_of(const KeyShape& s, const KeyRows& x, std::int64_t g) {
  std::vector<double> rows;
  for (std::int64_t t = 0; t < s.context; ++t) {
    for (const std::int64_t column : {s.key_column(), s.value_column()}) {
      for (std::int64_t c = 0; c < s.head_size; ++c) {
        rows.push_back(x.at(t, column + g * s.head_size + c));
      }
    }
  }
  return rows;
}
void put_head(const KeyShape& s, const std::vector<double>& rows, const KeyRows& y,
              std::int64_t g) {
  auto value = rows.begin();
  for (std::int64_t t = 0; t < s.context; ++t) {
    for (const std::int64_t column : {s.key_column(), s.value_column()}) {
      for (std::int64_t c = 0; c < s.head_size; ++c) {
        y.at(t, column + g * s.head_size + c) = *value++;
      }
    }
  }
}

void sort(const KeyShape& s, const double* weight, const KeyRows& x, const KeyRows& y) {
  BlockSorter<double> sorter(s);
  for (std::int64_t g = 0; g < s.key_heads; ++g) {
    const std::vector<double> rows = head_of(s, x, g);
    std::vector<double> sorted(rows.size());
    sorter.forward(rows.data(), weight + g * s.head_size, s.key_heads * s.head_size, sorted.data());
    put_head(s, sorted, y, g);
  }
}

void sort_backward(const KeyShape& s, const double* weight, const KeyRows& x, const KeyRows& dy,
                   const KeyRows& dx, std::vector<double>& d_weight) {
  BlockSorter<double> sorter(s);
  std::vector<double> own(d_weight.size());
  for (std::int64_t g = 0; g < s.key_heads; ++g) {
    const std::vector<double> rows = head_of(s, x, g), slopes = head_of(s, dy, g);
    std::vector<double> back(rows.size());
    const std::int64_t column = g * s.head_size;
    sorter.backward(rows.data(), slopes.data(), weight + column, s.key_heads * s.head_size,
                    back.data(), own.data() + column);
    put_head(s, back, dx, g);
  }
  for (std::size_t i = 0; i < own.size(); ++i) d_weight[i] += own[i];
}

}  // namespace

void run(const MapKeys& op, const Context& context) {
  const KeyShape& s = op.shape;
  const double* weight = context.data(op.weight);
  const double* qkv = context.data(op.qkv);
  std::copy(qkv, qkv + context.tensor(op.qkv).size(), context.data(op.y));
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const KeyRows x = key_rows(s, context.data(op.qkv), b), y = key_rows(s, context.data(op.y), b);
    if (s.map == KeyMap::smear) smear(s, weight, x, y);
    if (s.map == KeyMap::project) project(s, weight, context.tensor(op.weight).rows, x, y);
    if (s.map == KeyMap::synthesise) synthesise(s, weight, y);
    if (s.map == KeyMap::sort) sort(s, weight, x, y);
  }
}

void run(const MapKeysBackward& op, const Context& context) {
  const KeyShape& s = op.shape;
  const Tensor& tensor = context.tensor(op.weight);
  const double* weight = context.data(op.weight);
  const double* given = context.data(op.dy);
  std::copy(given, given + context.tensor(op.dy).size(), context.data(op.d_qkv));
  std::vector<double> d_weight(static_cast<std::size_t>(tensor.size()));
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const KeyRows x = key_rows(s, context.data(op.qkv), b);
    const KeyRows dy = key_rows(s, context.data(op.dy), b);
    const KeyRows dx = key_rows(s, context.data(op.d_qkv), b);
    if (s.map == KeyMap::smear) smear_backward(s, weight, x, dy, dx, d_weight.data());
    if (s.map == KeyMap::project) {
      project_backward(s, weight, tensor.rows, x, dy, dx, d_weight.data());
    }
    if (s.map == KeyMap::synthesise) synthesise_backward(s, x, dy, dx, d_weight.data());
    if (s.map == KeyMap::sort) sort_backward(s, weight, x, dy, dx, d_weight);
  }
  if (!op.d_weight.exists()) return;
  for (std::size_t i = 0; i < d_weight.size(); ++i) {
    put(&context.data(op.d_weight)[i], d_weight[i], op.d_weight_mode);
  }
}

}  // namespace fathom::engine::ref
