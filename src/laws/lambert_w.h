// The principal branch of Lambert's W: the w >= 0 with w e^w = x, for x >= 0.
#pragma once

#include <cmath>

namespace fathom::laws {

/// Newton's method on ln w + w = ln x, which converges from any w > 0 and cannot overflow.
inline double lambert_w(double x) {
  if (x <= 0) return 0;
  const double log_x = std::log(x);
  double w = log_x > 1 ? log_x - std::log(log_x) : x / (1 + x);
  for (int step = 0; step < 100; ++step) {
    const double residual = std::log(w) + w - log_x;
    const double next = w - residual * w / (1 + w);
    const double safe = next > 0 ? next : w / 2;
    if (std::fabs(safe - w) <= 1e-16 * safe) return safe;
    w = safe;
  }
  return w;
}

}  // namespace fathom::laws
