#include "theory/log_binomial.h"

#include <cmath>
#include <numbers>

namespace fathom::theory {
namespace {

/// s(x) = ln x! - (x ln x - x + ln(2 pi x)/2).
double stirling_error(double x) {
  if (x < 16) {
    return std::lgamma(x + 1) - (x * std::log(x) - x + 0.5 * std::log(2 * std::numbers::pi * x));
  }
  const double inverse_square = 1 / (x * x);
  return (1.0 / 12 -
          inverse_square * (1.0 / 360 - inverse_square * (1.0 / 1260 - inverse_square / 1680))) /
         x;
}

}  // namespace

double log_binomial(double m, double k) {
  if (m <= 0 || k <= 0) return 0;
  const double n = m + k;
  const double leading = k * std::log1p(m / k) + m * std::log1p(k / m);
  // ln sqrt(n / (2 pi m k)), the product m k kept apart from overflow.
  const double root =
      0.5 * (std::log(n) - std::log(m) - std::log(k) - std::log(2 * std::numbers::pi));
  return leading + root + stirling_error(n) - stirling_error(m) - stirling_error(k);
}

}  // namespace fathom::theory
