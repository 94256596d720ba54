// Student's distribution and sample quantiles, for intervals of fits.
#pragma once

#include <limits>
#include <vector>

namespace fathom::fits {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// 95 % of a normal lie within this many standard deviations.
inline constexpr double kNormal95 = 1.959964;

/// P(T <= t) with `degrees` > 0 degrees of freedom.
double student_cdf(double t, double degrees);
/// The t with P(T <= t) = probability.
double student_quantile(double probability, double degrees);
/// The quantile of a sample, linear between order statistics; NaN for an empty one.
double quantile(std::vector<double> sample, double probability);
double mean(const std::vector<double>& sample);
/// Median distance from the median; 1.4826 times it is a normal's standard deviation.
double median_deviation(const std::vector<double>& sample);
/// Standard deviation about the mean (n - 1).
double deviation(const std::vector<double>& sample);

}  // namespace fathom::fits
