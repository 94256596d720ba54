#include "lab/frame/statistics.h"

#include <cmath>

#include "core/random.h"
#include "fits/statistics.h"

namespace fathom::lab {

Interval bootstrap_interval(std::size_t units, const Statistic& statistic) {
  constexpr std::size_t kResamples = 1000;
  constexpr std::uint64_t kStream = 0x626f6f74;  // "boot"
  std::vector<std::size_t> drawn(units);
  if (units < 2) {
    const double value = statistic(drawn);
    return {value, value};
  }
  const RandomStream random(1, kStream);
  std::vector<double> values;
  for (std::size_t r = 0; r < kResamples; ++r) {
    for (std::size_t i = 0; i < units; ++i) drawn[i] = random.below(r * units + i, units);
    const double value = statistic(drawn);
    if (!std::isnan(value)) values.push_back(value);
  }
  return {fits::quantile(values, 0.025), fits::quantile(values, 0.975)};
}

Quartiles quartiles(const std::vector<double>& sample) {
  return {fits::quantile(sample, 0.25), fits::quantile(sample, 0.5), fits::quantile(sample, 0.75),
          sample.size()};
}

LineFit fit_line(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size());
  double mean_x = 0;
  double mean_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  LineFit fit;
  fit.slope = xy / xx;
  fit.intercept = mean_y - fit.slope * mean_x;
  fit.r_squared = yy > 0 ? xy * xy / (xx * yy) : 1;
  return fit;
}

}  // namespace fathom::lab
