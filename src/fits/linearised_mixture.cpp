#include "fits/linearised_mixture.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "fits/statistics.h"

namespace fathom::fits {
namespace {

/// What one surface predicts for an observation.
struct Predictive {
  Eigen::MatrixXd covariance;
  Eigen::LLT<Eigen::MatrixXd> factor;
  double log_determinant = 0;
};

/// tr(P_k^-1 P_j).
double apart(const Predictive& k, const Predictive& j) {
  const Eigen::MatrixXd root = j.factor.matrixL();
  return k.factor.matrixL().solve(root).squaredNorm();
}

}  // namespace

double mixture_error(const Eigen::ArrayXd& weights, const Eigen::ArrayXd& deviations,
                     double start) {
  // The share outside is convex and decreasing in e: from below, Newton's steps never overshoot the
  // root, and from above the first step lands below it.
  const double least = deviations.minCoeff();
  double e = std::max(least, start);
  for (int round = 0; round < 100; ++round) {
    double outside = 0;
    double slope = 0;
    for (Eigen::Index k = 0; k < weights.size(); ++k) {
      const double t = kNormal95 * e / deviations[k];
      outside += weights[k] * std::erfc(t / std::numbers::sqrt2);
      slope += weights[k] * std::sqrt(2 / std::numbers::pi) * std::exp(-t * t / 2) * kNormal95 /
               deviations[k];
    }
    const double next = std::max(least, e + (outside - 0.05) / slope);
    const bool done = std::fabs(next - e) < 1e-9 * e;
    e = next;
    if (done) break;
  }
  return e;
}

LinearisedMixture::LinearisedMixture(std::vector<LinearisedSurface> surfaces,
                                     const std::vector<double>& weights)
    : surfaces_(std::move(surfaces)),
      weights_(Eigen::Map<const Eigen::ArrayXd>(weights.data(),
                                                static_cast<Eigen::Index>(weights.size()))) {
  log_weights_ = weights_.log().matrix().transpose().replicate(weights_.size(), 1);
  errors_.resize(static_cast<std::size_t>(surfaces_.front().goals()),
                 Eigen::ArrayXd::Zero(weights_.size()));
  measure();
}

double LinearisedMixture::average(const Eigen::ArrayXd& errors) const {
  return std::exp((weights_ * errors.log()).sum());
}

void LinearisedMixture::measure() {
  Eigen::ArrayXd variances(weights_.size());
  for (std::size_t g = 0; g < errors_.size(); ++g) {
    for (Eigen::Index k = 0; k < weights_.size(); ++k) {
      variances[k] =
          surfaces_[static_cast<std::size_t>(k)].goal_variance(static_cast<Eigen::Index>(g));
    }
    errors_[g] = errors_of(log_weights_, variances, errors_[g]);
  }
}

Eigen::ArrayXd LinearisedMixture::errors_of(const Eigen::MatrixXd& log_weights,
                                            const Eigen::ArrayXd& variances,
                                            const Eigen::ArrayXd& start) const {
  const Eigen::ArrayXd deviations = variances.max(1e-300).sqrt();
  Eigen::ArrayXd errors(weights_.size());
  for (Eigen::Index j = 0; j < weights_.size(); ++j) {
    const Eigen::ArrayXd row = log_weights.row(j).transpose();
    const Eigen::ArrayXd odds = (row - row.maxCoeff()).exp();
    errors[j] = mixture_error(odds / odds.sum(), deviations, start[j]);
  }
  return errors;
}

Eigen::MatrixXd LinearisedMixture::expected_weights(const Observation& observation) const {
  std::vector<Predictive> predicted(surfaces_.size());
  for (std::size_t k = 0; k < surfaces_.size(); ++k) {
    Predictive& own = predicted[k];
    own.covariance = surfaces_[k].predictive_covariance(observation.sites, observation.noises[k]);
    own.factor.compute(own.covariance);
    own.log_determinant = 2 * own.factor.matrixLLT().diagonal().array().log().sum();
  }
  const auto count = static_cast<double>(observation.sites.size());
  Eigen::MatrixXd after = log_weights_;
  for (std::size_t j = 0; j < predicted.size(); ++j) {
    for (std::size_t k = 0; k < predicted.size(); ++k) {
      if (j == k) continue;
      const double divergence = (apart(predicted[k], predicted[j]) - count +
                                 predicted[k].log_determinant - predicted[j].log_determinant) /
                                2;
      after(static_cast<Eigen::Index>(j), static_cast<Eigen::Index>(k)) -= divergence;
    }
  }
  return after;
}

std::vector<double> LinearisedMixture::expected_errors(std::span<const Eigen::Index> goals,
                                                       const Observation& observation) const {
  const Eigen::MatrixXd after = expected_weights(observation);
  std::vector<double> errors;
  for (const Eigen::Index goal : goals) {
    Eigen::ArrayXd variances(weights_.size());
    for (std::size_t k = 0; k < surfaces_.size(); ++k) {
      variances[static_cast<Eigen::Index>(k)] =
          surfaces_[k].expected_variance(goal, observation.sites, observation.noises[k]);
    }
    errors.push_back(average(errors_of(after, variances, errors_[static_cast<std::size_t>(goal)])));
  }
  return errors;
}

void LinearisedMixture::observe(const Observation& observation) {
  log_weights_ = expected_weights(observation);
  for (std::size_t k = 0; k < surfaces_.size(); ++k) {
    surfaces_[k].observe(observation.sites, observation.noises[k]);
  }
  measure();
}

}  // namespace fathom::fits
