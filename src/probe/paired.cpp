#include "probe/paired.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/counts.h"
#include "fits/statistics.h"

namespace fathom::probe {

Cost estimate(const WindowSums& sums) {
  const std::size_t windows = sums.sum.size();
  const double total = std::accumulate(sums.sum.begin(), sums.sum.end(), 0.0);
  const double tokens = std::accumulate(sums.count.begin(), sums.count.end(), 0.0);
  Cost cost;
  cost.mean = tokens > 0 ? total / tokens : 0;
  if (windows < 2) {
    cost.error = cost.low = cost.high = std::numeric_limits<double>::quiet_NaN();
    return cost;
  }
  double squares = 0;
  for (std::size_t w = 0; w < windows; ++w) {
    const double residual = sums.sum[w] - cost.mean * sums.count[w];
    squares += residual * residual;
  }
  const double W = as_double(windows);
  cost.error = std::sqrt(W / (W - 1) * squares) / tokens;
  const double reach = fits::student_quantile(0.975, W - 1) * cost.error;
  cost.low = cost.mean - reach;
  cost.high = cost.mean + reach;
  return cost;
}

double half_mean(const WindowSums& sums, std::size_t parity) {
  double total = 0, tokens = 0;
  for (std::size_t w = parity; w < sums.sum.size(); w += 2) {
    total += sums.sum[w];
    tokens += sums.count[w];
  }
  return tokens > 0 ? total / tokens : std::numeric_limits<double>::quiet_NaN();
}

namespace {

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t j = i;
    while (j + 1 < order.size() && values[order[j + 1]] == values[order[i]]) ++j;
    for (std::size_t k = i; k <= j; ++k) result[order[k]] = as_double(i + j) / 2;
    i = j + 1;
  }
  return result;
}

}  // namespace

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 3 || a.size() != b.size()) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = as_double(a.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace fathom::probe
