// Descent of a smooth function of a few variables: BFGS with a backtracking line search that
// satisfies the curvature condition (Nocedal & Wright, chapters 3 and 6).
#pragma once

#include <Eigen/Core>
#include <functional>

namespace fathom::fits {

/// The value at x and, into `gradient`, the gradient there.
using SmoothFunction = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct Minimum {
  Eigen::VectorXd x;
  double value = 0;
  int steps = 0;
};

Minimum minimise_bfgs(const SmoothFunction& function, Eigen::VectorXd start, int most_steps,
                      double relative_tolerance = 1e-12);

}  // namespace fathom::fits
