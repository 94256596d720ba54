// A difference of losses between two ways of running a model on the same tokens, with its error.
//
// mean = sum of differences / tokens, a ratio of sums over windows. Tokens of one window are
// correlated, so the error is that of the ratio with windows as units:
//   se^2 = W / (W - 1) sum_w (d_w - mean n_w)^2 / N^2,
// and the interval of 95 % takes Student's quantile with W - 1 degrees of freedom.
#pragma once

#include <cstddef>
#include <vector>

namespace fathom::probe {

struct Cost {
  double mean = 0;
  double error = 0;  // standard error
  double low = 0, high = 0;
};

/// Sums over windows: of differences (or losses) and of the tokens they cover.
struct WindowSums {
  std::vector<double> sum, count;
  void add(double total, double tokens) {
    sum.push_back(total);
    count.push_back(tokens);
  }
};

/// With a single window the error is unknown: NaN.
Cost estimate(const WindowSums& sums);
/// Over the windows of one parity only: half of the text.
double half_mean(const WindowSums& sums, std::size_t parity);

/// Spearman's rank correlation; ties share their mean rank. NaN for fewer than three values.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace fathom::probe
