// One-dimensional searches over positive quantities, in logarithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fathom::laws {

/// Minimiser of a unimodal f over [low, high], golden section in ln x.
template <class Function>
double minimise_positive(Function&& f, double low, double high) {
  constexpr double kShrink = 1 / std::numbers::phi;
  double a = std::log(low);
  double b = std::log(high);
  double c = b - (b - a) * kShrink;
  double d = a + (b - a) * kShrink;
  double fc = f(std::exp(c));
  double fd = f(std::exp(d));
  for (int step = 0; step < 120 && b - a > 1e-9; ++step) {
    if (fc < fd) {
      b = d;
      d = c;
      fd = fc;
      c = b - (b - a) * kShrink;
      fc = f(std::exp(c));
    } else {
      a = c;
      c = d;
      fc = fd;
      d = a + (b - a) * kShrink;
      fd = f(std::exp(d));
    }
  }
  return std::exp((a + b) / 2);
}

/// The x in [low, high] where the monotone predicate turns from false to true (bisection in ln x);
/// `high` when it never does.
template <class Predicate>
double first_true(Predicate&& predicate, double low, double high) {
  double a = std::log(low);
  double b = std::log(high);
  for (int step = 0; step < 200 && b - a > 1e-14 * std::fabs(b); ++step) {
    const double middle = (a + b) / 2;
    (predicate(std::exp(middle)) ? b : a) = middle;
  }
  return std::exp(b);
}

/// The x in [low, high] with f(x) = value for a rising f that is nearly a power of x: false
/// position in logarithms, the stale end's weight halved (Illinois), bisection where that stalls.
template <class Function>
double solve_rising(Function&& f, double value, double low, double high) {
  double a = std::log(low), b = std::log(high);
  double below = std::log(f(low) / value), above = std::log(f(high) / value);
  int stale = 0;  // how often the same end has stayed, with its sign
  for (int step = 0; step < 200 && b - a > 1e-13 * std::fabs(b); ++step) {
    const bool stalled = stale > 3 || stale < -3;
    const double x = stalled ? (a + b) / 2 : a - below * (b - a) / (above - below);
    const double off = std::log(f(std::exp(x)) / value);
    if (std::fabs(off) < 1e-13) return std::exp(x);
    if (off < 0) {
      a = x;
      below = off;
      stale = stalled ? 0 : std::max(stale, 0) + 1;
      if (stale > 1) above /= 2;
    } else {
      b = x;
      above = off;
      stale = stalled ? 0 : std::min(stale, 0) - 1;
      if (stale < -1) below /= 2;
    }
  }
  return std::exp((a + b) / 2);
}

}  // namespace fathom::laws
