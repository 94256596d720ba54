#include "fits/minimise.h"

#include <cmath>

namespace fathom::fits {
namespace {

/// A step along `direction` with sufficient decrease and enough curvature (weak Wolfe), by
/// bisection between the longest step known too short and the shortest known too long.
struct LineSearch {
  double step = 0;
  double value = 0;
  Eigen::VectorXd x;
  Eigen::VectorXd gradient;
};

bool search_line(const SmoothFunction& function, const Eigen::VectorXd& x, double value,
                 const Eigen::VectorXd& gradient, const Eigen::VectorXd& direction,
                 LineSearch& found) {
  constexpr double kDecrease = 1e-4;
  constexpr double kCurvature = 0.9;
  const double slope = gradient.dot(direction);
  double low = 0;
  double high = 0;
  double step = 1;
  bool improved = false;
  for (int trial = 0; trial < 50; ++trial) {
    const Eigen::VectorXd there = x + step * direction;
    Eigen::VectorXd gradient_there(x.size());
    const double value_there = function(there, gradient_there);
    const bool low_enough =
        std::isfinite(value_there) && value_there <= value + kDecrease * step * slope;
    if (!low_enough) {
      high = step;
    } else {
      improved = true;
      found = {step, value_there, there, gradient_there};
      if (gradient_there.dot(direction) >= kCurvature * slope) return true;
      low = step;
    }
    step = high > 0 ? (low + high) / 2 : 2 * step;
  }
  return improved;
}

}  // namespace

Minimum minimise_bfgs(const SmoothFunction& function, Eigen::VectorXd x, int most_steps,
                      double relative_tolerance) {
  const Eigen::Index size = x.size();
  Eigen::VectorXd gradient(size);
  double value = function(x, gradient);
  Eigen::MatrixXd inverse = Eigen::MatrixXd::Identity(size, size);
  bool fresh = true;  // the inverse Hessian is still a multiple of the identity
  int quiet = 0;      // steps in a row that hardly gained
  int step = 0;
  for (; step < most_steps && std::isfinite(value); ++step) {
    Eigen::VectorXd direction = -inverse * gradient;
    if (!(gradient.dot(direction) < 0)) {
      if (fresh) break;
      inverse.setIdentity();
      fresh = true;
      continue;
    }
    if (fresh) direction *= std::min(1.0, 0.1 / direction.norm());
    LineSearch next;
    if (!search_line(function, x, value, gradient, direction, next)) {
      if (fresh) break;
      inverse.setIdentity();
      fresh = true;
      continue;
    }
    const Eigen::VectorXd s = next.x - x;
    const Eigen::VectorXd y = next.gradient - gradient;
    const double sy = s.dot(y);
    if (sy > 1e-300) {
      if (fresh) inverse *= sy / y.squaredNorm();
      const Eigen::VectorXd hy = inverse * y;
      inverse += (1 + y.dot(hy) / sy) / sy * s * s.transpose() -
                 (hy * s.transpose() + s * hy.transpose()) / sy;
      fresh = false;
    }
    const double gained = value - next.value;
    x = next.x;
    value = next.value;
    gradient = next.gradient;
    quiet = gained <= relative_tolerance * std::fabs(value) ? quiet + 1 : 0;
    if (quiet >= 3) break;
  }
  return {x, value, step};
}

}  // namespace fathom::fits
