#include "lab/collapse/split_stack.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "lab/collapse/stack.h"

namespace fathom::lab {
namespace {

/// x_i = mean + 2^exponent residual_i.
struct SplitTokens {
  std::vector<double> mean;
  Matrix<double> residual;
  std::int64_t exponent = 0;
};

/// value 2^exponent; 0 once it is below every double.
double scaled(double value, std::int64_t exponent) {
  return std::ldexp(value, static_cast<int>(std::clamp<std::int64_t>(exponent, -5000, 5000)));
}

std::vector<double> row_product(const std::vector<double>& row, const Matrix<double>& weight) {
  std::vector<double> out(weight.columns, 0);
  for (std::size_t k = 0; k < row.size(); ++k) {
    for (std::size_t j = 0; j < weight.columns; ++j) out[j] += row[k] * weight.at(k, j);
  }
  return out;
}

/// Moves the mean of the residuals into the common mean and scales the largest residual to near 1.
void settle(SplitTokens& x) {
  const std::vector<double> means = column_means(x.residual);
  double largest = 0;
  for (std::size_t i = 0; i < x.residual.rows; ++i) {
    for (std::size_t j = 0; j < x.residual.columns; ++j) {
      x.residual.at(i, j) -= means[j];
      largest = std::max(largest, std::fabs(x.residual.at(i, j)));
    }
  }
  for (std::size_t j = 0; j < means.size(); ++j) x.mean[j] += scaled(means[j], x.exponent);
  if (largest == 0 || !std::isfinite(largest)) return;
  const int shift = std::ilogb(largest);
  for (double& value : x.residual.values) value = std::ldexp(value, -shift);
  x.exponent += shift;
}

/// The residuals of x, rescaled to another exponent.
Matrix<double> at_exponent(const SplitTokens& x, std::int64_t exponent) {
  Matrix<double> r = x.residual;
  for (double& value : r.values) value = scaled(value, x.exponent - exponent);
  return r;
}

SplitTokens sum(const SplitTokens& a, const SplitTokens& b) {
  SplitTokens s = a;
  s.exponent = std::max(a.exponent, b.exponent);
  s.residual = at_exponent(a, s.exponent);
  add_to(s.residual, at_exponent(b, s.exponent));
  for (std::size_t j = 0; j < s.mean.size(); ++j) s.mean[j] += b.mean[j];
  return s;
}

/// Scores without their common part per query: shared[j] 2^e + own(i, j) 2^2e.
struct SplitScores {
  std::vector<double> shared;
  Matrix<double> own;
};

SplitScores scores(const StackSpec& spec, const HeadWeights& head, const SplitTokens& x) {
  const double root = std::sqrt(static_cast<double>(spec.head_size()));
  const std::vector<double> common = row_product(x.mean, head.query);
  const Matrix<double> queries = product(x.residual, head.query);
  const Matrix<double> keys = product(x.residual, head.key);
  SplitScores s{std::vector<double>(x.residual.rows, 0),
                Matrix<double>(x.residual.rows, x.residual.rows)};
  for (std::size_t j = 0; j < keys.rows; ++j) {
    for (std::size_t a = 0; a < keys.columns; ++a) s.shared[j] += common[a] * keys.at(j, a) / root;
    for (std::size_t i = 0; i < keys.rows; ++i) {
      for (std::size_t a = 0; a < keys.columns; ++a) {
        s.own.at(i, j) += queries.at(i, a) * keys.at(j, a) / root;
      }
    }
  }
  return s;
}

std::vector<double> softmax(std::vector<double> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double total = 0;
  for (double& value : row) total += value = std::exp(value - largest);
  for (double& value : row) value /= total;
  return row;
}

/// Weights of the keys that a query sees, 0 elsewhere.
Matrix<double> masked_weights(const StackSpec& spec, const SplitScores& s, std::int64_t e) {
  const std::size_t n = s.shared.size();
  Matrix<double> weights(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> row(n, -1e300);
    for (std::size_t j = 0; j < n; ++j) {
      if (spec.sees(i, j)) row[j] = scaled(s.shared[j], e) + scaled(s.own.at(i, j), 2 * e);
    }
    row = softmax(std::move(row));
    for (std::size_t j = 0; j < n; ++j) weights.at(i, j) = row[j];
  }
  return weights;
}

/// (A_ij - p_j) 2^-2e for the common weights p.
Matrix<double> own_weights(const SplitScores& s, const std::vector<double>& p, std::int64_t e) {
  const std::size_t n = p.size();
  Matrix<double> own(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> excess(n);  // E_ij 2^-2e
    double mean = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const double b = scaled(s.own.at(i, j), 2 * e);
      // Below 2^-60 the exponential is linear to full precision.
      excess[j] = std::fabs(b) < 0x1p-60 ? s.own.at(i, j) : scaled(std::expm1(b), -2 * e);
      mean += p[j] * excess[j];
    }
    const double total = 1 + scaled(mean, 2 * e);
    for (std::size_t j = 0; j < n; ++j) own.at(i, j) = p[j] * (excess[j] - mean) / total;
  }
  return own;
}

/// Tokens closer than half of this exponent, 2^-(5 10^16), count as equal.
constexpr std::int64_t kLeastExponent = -100'000'000'000'000'000;
/// Largest score part b_ij whose exponential is split off from exp(a_j).
constexpr double kSmallScore = 0.5;

SplitTokens attend_head(const StackSpec& spec, const HeadWeights& head, const SplitTokens& x) {
  const SplitScores s = scores(spec, head, x);
  const Matrix<double> values = product(product(x.residual, head.value), head.output);
  SplitTokens y;
  y.mean = row_product(row_product(x.mean, head.value), head.output);
  double largest = 0;
  for (const double b : s.own.values) {
    largest = std::max(largest, std::fabs(scaled(b, 2 * x.exponent)));
  }
  if (!spec.all_see_all() || largest > kSmallScore) {
    y.residual = product(masked_weights(spec, s, x.exponent), values);
    y.exponent = x.exponent;
    return y;
  }
  std::vector<double> shared(s.shared);
  for (double& value : shared) value = scaled(value, x.exponent);
  const std::vector<double> p = softmax(std::move(shared));
  for (std::size_t j = 0; j < p.size(); ++j) {
    for (std::size_t a = 0; a < y.mean.size(); ++a) {
      y.mean[a] += p[j] * scaled(values.at(j, a), x.exponent);
    }
  }
  y.residual = product(own_weights(s, p, x.exponent), values);
  y.exponent = std::max(3 * x.exponent, kLeastExponent);
  return y;
}

/// Rows to mean 0 and variance 1: with c the centred mean and t_i the centred residuals,
/// 1/|c + t_i| = (1 + u_i)/|c|, u_i = (1 + (2 <c, t_i> + |t_i|^2)/|c|^2)^(-1/2) - 1.
void normalise(SplitTokens& x) {
  const auto centre = [](double* row, std::size_t size) {
    double mean = 0;
    for (std::size_t j = 0; j < size; ++j) mean += row[j];
    for (std::size_t j = 0; j < size; ++j) row[j] -= mean / static_cast<double>(size);
  };
  const std::size_t d = x.mean.size();
  centre(x.mean.data(), d);
  double square = 0;
  for (const double value : x.mean) square += value * value;
  const double deviation = std::sqrt(square / static_cast<double>(d));
  for (std::size_t i = 0; i < x.residual.rows; ++i) {
    double* row = &x.residual.at(i, 0);
    centre(row, d);
    double cross = 0;
    double own = 0;
    for (std::size_t j = 0; j < d; ++j) {
      cross += x.mean[j] * row[j];
      own += row[j] * row[j];
    }
    // The change of length in units of 2^exponent, so that it stays a normal number.
    const double t = (2 * cross + scaled(own, x.exponent)) / square;
    const double change = scaled(t, x.exponent);
    const double u = std::fabs(change) < 0x1p-60
                         ? -t / 2
                         : scaled(std::expm1(-0.5 * std::log1p(change)), -x.exponent);
    for (std::size_t j = 0; j < d; ++j) {
      row[j] = (row[j] + u * (x.mean[j] + scaled(row[j], x.exponent))) / deviation;
    }
  }
  for (double& value : x.mean) value /= deviation;
}

SplitTokens feed_forward(const LayerWeights& layer, const SplitTokens& x) {
  const std::vector<double> common = row_product(x.mean, layer.up);
  Matrix<double> hidden = product(x.residual, layer.up);
  std::vector<double> active(common.size());
  for (std::size_t a = 0; a < common.size(); ++a) active[a] = std::max(common[a], 0.0);
  for (std::size_t i = 0; i < hidden.rows; ++i) {
    for (std::size_t a = 0; a < hidden.columns; ++a) {
      const double sum = common[a] + scaled(hidden.at(i, a), x.exponent);
      const bool flips = (sum > 0) != (common[a] > 0);
      if (flips) {
        hidden.at(i, a) = scaled(std::max(sum, 0.0) - active[a], -x.exponent);
      } else if (common[a] <= 0) {
        hidden.at(i, a) = 0;
      }
    }
  }
  return {row_product(active, layer.down), product(hidden, layer.down), x.exponent};
}

void update_split(const StackSpec& spec, SplitTokens& x, const SplitTokens& y) {
  x = spec.skip ? sum(x, y) : y;
  settle(x);
  if (spec.norm) {
    normalise(x);
    settle(x);
  }
}

void note(const SplitTokens& x, SplitCourse& course) {
  Matrix<double> whole = x.residual;
  for (std::size_t i = 0; i < whole.rows; ++i) {
    for (std::size_t j = 0; j < whole.columns; ++j) {
      whole.at(i, j) = x.mean[j] + scaled(whole.at(i, j), x.exponent);
    }
  }
  const bool told_apart = x.exponent > kLeastExponent / 2;
  const double size =
      told_apart ? log10_size(x.residual) + static_cast<double>(x.exponent) * std::log10(2.0)
                 : -std::numeric_limits<double>::infinity();
  course.log10_residual.push_back(size);
  course.log10_rho.push_back(size - log10_size(whole));
}

}  // namespace

SplitCourse split_course(const StackSpec& spec, const StackDraw& draw,
                         const std::function<void()>& look) {
  SplitTokens x{std::vector<double>(spec.width, 0), stack_input<double>(spec, draw), 0};
  settle(x);
  SplitCourse course;
  note(x, course);
  for (const LayerWeights& layer : draw.layers) {
    if (look) look();
    SplitTokens y = attend_head(spec, layer.heads.front(), x);
    for (std::size_t h = 1; h < layer.heads.size(); ++h) {
      y = sum(y, attend_head(spec, layer.heads[h], x));
    }
    update_split(spec, x, y);
    if (spec.mlp) update_split(spec, x, feed_forward(layer, x));
    note(x, course);
  }
  return course;
}

}  // namespace fathom::lab
