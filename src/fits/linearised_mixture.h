// Goals while the size of the misfit is open: one linearised surface (linearised_surface.h) for
// each size of misfit that the runs leave possible.
//
// The posterior's interval is that of a mixture, and most of its length is often due to a misfit
// that cannot be excluded yet. So runs lower an error in two ways: the variance falls under every
// surface, and surfaces that do not hold lose weight. Both can be predicted. If surface j holds,
// runs raise its log odds over k on average by the divergence between their predictions,
//   (tr(P_k^-1 P_j) - n + ln|P_k| - ln|P_j|) / 2,   P = C_oo + S.
// The predicted error is the geometric mean, over j by today's weights, of the mixture's error if j
// holds; a mixture's error is half its 95 % interval over 1.96.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <span>
#include <vector>

#include "fits/linearised_surface.h"

namespace fathom::fits {

/// The e at which sum of w_k P(|normal with deviation s_k| > 1.96 e) = 0.05.
/// `start`: about there.
double mixture_error(const Eigen::ArrayXd& weights, const Eigen::ArrayXd& deviations, double start);

/// Runs at some sites.
struct Observation {
  std::vector<std::size_t> sites;
  std::vector<Eigen::MatrixXd> noises;  // covariance of their noise under each surface
};

class LinearisedMixture {
 public:
  /// Weights sum to one.
  LinearisedMixture(std::vector<LinearisedSurface> surfaces, const std::vector<double>& weights);

  double error(Eigen::Index goal) const { return average(errors_[static_cast<std::size_t>(goal)]); }
  /// The error of each of `goals` if these runs were made.
  std::vector<double> expected_errors(std::span<const Eigen::Index> goals,
                                      const Observation& observation) const;
  void observe(const Observation& observation);

 private:
  /// The errors of a goal, one for each surface that may hold.
  Eigen::ArrayXd errors_of(const Eigen::MatrixXd& log_weights, const Eigen::ArrayXd& variances,
                           const Eigen::ArrayXd& start) const;
  double average(const Eigen::ArrayXd& errors) const;
  /// log_weights_ after these runs.
  Eigen::MatrixXd expected_weights(const Observation& observation) const;
  void measure();

  std::vector<LinearisedSurface> surfaces_;
  Eigen::ArrayXd weights_;       // today's
  Eigen::MatrixXd log_weights_;  // (j, k): of surface k if j holds, up to a constant for each j
  std::vector<Eigen::ArrayXd> errors_;  // of each goal, if j holds
};

}  // namespace fathom::fits
