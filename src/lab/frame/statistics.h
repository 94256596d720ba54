// Intervals for quantities that vary by seed: bootstrap percentiles, the same on every machine.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/interval.h"

namespace fathom::lab {

/// The statistic of a sample of units (seeds), given by their indices, which may repeat.
using Statistic = std::function<double(std::span<const std::size_t> units)>;

/// 95 % percentile interval over 1,000 resamples of `units` units; values that are not numbers are
/// left out. A single unit gives no interval: both ends are its statistic.
Interval bootstrap_interval(std::size_t units, const Statistic& statistic);

struct Quartiles {
  double low = 0;
  double median = 0;
  double high = 0;
  std::size_t count = 0;
};
/// Linear between order statistics; NaN for an empty sample.
Quartiles quartiles(const std::vector<double>& sample);

/// Slope and share of explained variance of y against x by least squares.
struct LineFit {
  double slope = 0;
  double intercept = 0;
  double r_squared = 0;
};
LineFit fit_line(std::span<const double> x, std::span<const double> y);

}  // namespace fathom::lab
