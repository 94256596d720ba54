#include "fits/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/counts.h"

namespace fathom::fits {
namespace {

/// The continued fraction of the incomplete beta function (Lentz's method), for x < (a+1)/(a+b+2).
double beta_fraction(double a, double b, double x) {
  double c = 1;
  double d = 1 / (1 - (a + b) * x / (a + 1));
  double value = d;
  for (int m = 1; m < 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / (1 + even * d);
    c = 1 + even / c;
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / (1 + odd * d);
    c = 1 + odd / c;
    value *= d * c;
    if (std::fabs(d * c - 1) < 1e-15) break;
  }
  return value;
}

/// The regularised incomplete beta function I_x(a, b).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_cdf(double t, double degrees) {
  const double tail = 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
  return t > 0 ? 1 - tail : tail;
}

double student_quantile(double probability, double degrees) {
  double low = -1e6;
  double high = 1e6;
  for (int step = 0; step < 200 && high - low > 1e-12 * std::max(1.0, std::fabs(low)); ++step) {
    const double middle = (low + high) / 2;
    (student_cdf(middle, degrees) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

double quantile(std::vector<double> sample, double probability) {
  if (sample.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(sample.begin(), sample.end());
  const double place = probability * as_double(sample.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sample.size() - 1);
  const double share = place - as_double(below);
  return sample[below] + share * (sample[above] - sample[below]);
}

double mean(const std::vector<double>& sample) {
  double sum = 0;
  for (const double value : sample) sum += value;
  return sum / as_double(sample.size());
}

double median_deviation(const std::vector<double>& sample) {
  const double centre = quantile(sample, 0.5);
  std::vector<double> distances;
  for (const double value : sample) distances.push_back(std::fabs(value - centre));
  return quantile(std::move(distances), 0.5);
}

double deviation(const std::vector<double>& sample) {
  const double centre = mean(sample);
  double sum = 0;
  for (const double value : sample) sum += (value - centre) * (value - centre);
  return std::sqrt(sum / as_double(sample.size() - 1));
}

}  // namespace fathom::fits
