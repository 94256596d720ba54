#include "fits/depth_law.h"

#include <algorithm>
#include <cmath>

namespace fathom::fits {
namespace {

/// The w with w + q (e^w - 1) = dx. The left side rises while 1 + q e^w > 0, which for q < 0 ends
/// somewhere: where its slope falls to kLeastRise, the tangent there continues it.
double solve_exponential(double q, double dx) {
  constexpr double kLeastRise = 0.1;
  const double most = q < 0 ? std::log((1 - kLeastRise) / -q) : 1e300;
  if (q < 0) {
    const double beyond = dx - (most + q * std::expm1(most));
    if (beyond > 0) return most + beyond / kLeastRise;
  }
  // Start on the side from which Newton's steps approach the root without overshooting: the left
  // side is convex for q > 0 (from the right), concave for q < 0 (from the left).
  double w = dx > 0 ? dx : dx + q;
  if (q > 0) w = dx > 0 ? std::min(dx, std::log1p(dx / q)) : std::min(0.0, dx + q);
  w = std::min(w, most);
  for (int step = 0; step < 100; ++step) {
    const double power = std::exp(w);
    const double rise = std::max(kLeastRise, 1 + q * power);
    const double move = (w + q * (power - 1) - dx) / rise;
    w = std::min(w - move, most);
    // A step leaves an error of at most five times the square of its length.
    if (std::fabs(move) < 1e-8 * std::max(1.0, std::fabs(w))) break;
  }
  return w;
}

/// (e^(q t) - 1) / q and its derivative with respect to q.
struct Growth {
  double value = 0;
  double by_bend = 0;
};
Growth grow(double q, double t) {
  const double p = q * t;
  if (std::fabs(p) < 1e-3) {
    return {t * (1 + p / 2 + p * p / 6), t * t * (0.5 + p / 3 + p * p / 8)};
  }
  const double e = std::expm1(p);
  return {e / q, (t * (e + 1) - e / q) / q};
}

}  // namespace

int DepthLaw::size() const {
  switch (form_) {
    case LawForm::ratio:
      return 1;
    case LawForm::free:
      return 3;
    default:
      return 2;
  }
}

double DepthLaw::log_depth(const double* parameters, double log_size) const {
  const double dx = log_size - centre_;
  if (form_ == LawForm::ratio) return parameters[0] + dx / 3;
  const double s = std::exp(parameters[1]);
  if (form_ == LawForm::power) return parameters[0] + s * dx;
  if (form_ == LawForm::free) return parameters[0] + s * grow(parameters[2], dx).value;
  return parameters[0] + solve_exponential(1 / s - 1, dx);
}

DepthLaw::Place DepthLaw::at(const double* parameters, double log_size) const {
  const double dx = log_size - centre_;
  const double u0 = parameters[0];
  if (form_ == LawForm::ratio) return {u0 + dx / 3, 1.0 / 3, {1, 0, 0}};
  const double s = std::exp(parameters[1]);
  if (form_ == LawForm::power) return {u0 + s * dx, s, {1, s * dx, 0}};
  if (form_ == LawForm::free) {
    const double q = parameters[2];
    const Growth growth = grow(q, dx);
    return {u0 + s * growth.value, s * std::exp(q * dx), {1, s * growth.value, s * growth.by_bend}};
  }
  const double q = 1 / s - 1;
  const double w = solve_exponential(q, dx);
  const double grown = std::expm1(w);
  const double slope = 1 / std::max(0.1, 1 + q * (1 + grown));
  // dw/dq = -(e^w - 1) / (1 + q e^w), dq/d ln s = -1/s.
  return {u0 + w, slope, {1, grown * slope / s, 0}};
}

double DepthLaw::log_size(const double* parameters, double log_depth) const {
  const double w = log_depth - parameters[0];
  if (form_ == LawForm::ratio) return centre_ + 3 * w;
  const double s = std::exp(parameters[1]);
  if (form_ == LawForm::power) return centre_ + w / s;
  if (form_ == LawForm::exponential) return centre_ + w + (1 / s - 1) * std::expm1(w);
  const double q = parameters[2];
  if (std::fabs(q) < 1e-9) return centre_ + w / s;
  const double inside = 1 + q * w / s;
  // A bent law may never reach the depth: the size is then beyond all sizes.
  return inside > 0 ? centre_ + std::log(inside) / q : (q < 0 ? 1e300 : -1e300);
}

DepthLaw::Constants DepthLaw::constants(const double* parameters, double block_coefficient) const {
  const double layers = std::exp(parameters[0]);
  const double b = (std::exp(-parameters[1]) - 1) / (2 * layers);
  return {(centre_ - std::log(block_coefficient) - parameters[0]) / 2 - b * layers, b};
}

}  // namespace fathom::fits
