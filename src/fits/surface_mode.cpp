#include "fits/surface_mode.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numbers>

namespace fathom::fits {
namespace {

// Knots of the crest on either side of the mode, a deviation of its parameter apart.
constexpr int kKnots = 3;

double log_prior(const DepthSurface::Prior& prior, const Eigen::VectorXd& parameters) {
  const Eigen::ArrayXd t = (parameters - prior.mean).array() / prior.deviation.array();
  return -(t.square().sum() / 2 + prior.deviation.array().log().sum() +
           static_cast<double>(t.size()) / 2 * std::log(2 * std::numbers::pi));
}

/// Residual, projected information and slope at a point.
struct Step {
  double log_likelihood = 0;
  double log_posterior = 0;
  Eigen::MatrixXd information;
  Eigen::VectorXd slope;
};

Step evaluate(const SurfaceLikelihood& likelihood, const SurfaceLikelihood::Prepared& prepared,
              const DepthSurface& surface, const DepthSurface::Prior& prior,
              const Eigen::VectorXd& parameters) {
  Eigen::MatrixXd columns;  // Jacobian, then the residual
  const Eigen::VectorXd penalties = likelihood.penalties(surface, parameters, columns);
  columns.conservativeResize(Eigen::NoChange, surface.size() + 1);
  columns.rightCols(1) = likelihood.means() - penalties;
  likelihood.whiten(prepared, columns);
  const Eigen::MatrixXd projected =
      prepared.normal.matrixL().solve(prepared.design.transpose() * columns);
  const Eigen::MatrixXd product = columns.transpose() * columns - projected.transpose() * projected;
  const Eigen::Index count = surface.size();
  Step step;
  step.log_likelihood = prepared.repeats - (prepared.log_determinants + product(count, count)) / 2;
  step.log_posterior = step.log_likelihood + log_prior(prior, parameters);
  const Eigen::VectorXd precision = prior.deviation.array().square().inverse();
  step.information = product.topLeftCorner(count, count);
  step.information.diagonal() += precision;
  step.slope = product.col(count).head(count) - precision.cwiseProduct(parameters - prior.mean);
  return step;
}

/// Where a damped step leads. A held parameter has zero slope and no coupling to the others.
Eigen::VectorXd damped_move(const Step& step, double damping, std::optional<Eigen::Index> held) {
  Eigen::MatrixXd damped = step.information;
  Eigen::VectorXd slope = step.slope;
  damped.diagonal() *= 1 + damping;
  if (held) {
    damped.row(*held).setZero();
    damped.col(*held).setZero();
    damped(*held, *held) = 1;
    slope[*held] = 0;
  }
  return damped.ldlt().solve(slope);
}

}  // namespace

DepthSurface::Prior surface_prior(const SurfaceData& data, const DepthSurface& surface) {
  double sum = 0;
  for (const std::int64_t layers : data.depths) sum += std::log(static_cast<double>(layers));
  return surface.prior(sum / static_cast<double>(data.depths.size()));
}

double log_posterior(const SurfaceLikelihood& likelihood,
                     const SurfaceLikelihood::Prepared& prepared, const DepthSurface& surface,
                     const Eigen::VectorXd& parameters) {
  Eigen::MatrixXd residual = likelihood.means() - likelihood.penalties(surface, parameters);
  likelihood.whiten(prepared, residual);
  const double square = SurfaceLikelihood::quadratic(prepared, residual);
  return prepared.repeats - (prepared.log_determinants + square) / 2 +
         log_prior(surface_prior(likelihood.data(), surface), parameters);
}

Eigen::VectorXd best_start(const SurfaceLikelihood& likelihood,
                           const SurfaceLikelihood::Prepared& prepared,
                           const DepthSurface& surface) {
  const SurfaceData& data = likelihood.data();
  const DepthSurface::Prior prior = surface_prior(data, surface);
  Eigen::VectorXd best = prior.mean;
  double best_value = -1e300;
  for (int i = 0; i <= 6; ++i) {
    Eigen::VectorXd start = prior.mean;
    start[0] = data.log_depth.low + (data.log_depth.high - data.log_depth.low) * i / 6;
    for (const double slope : {0.15, 0.35, 0.7}) {
      if (surface.law().size() > 1) start[1] = std::log(slope);
      for (const double curvature : {0.005, 0.02, 0.06}) {
        start[surface.curvature_place()] = std::log(curvature);
        const double value = log_posterior(likelihood, prepared, surface, start);
        if (value > best_value) best_value = value, best = start;
      }
    }
  }
  return best;
}

SurfaceMode find_mode(const SurfaceLikelihood& likelihood,
                      const SurfaceLikelihood::Prepared& prepared, const DepthSurface& surface,
                      const Eigen::VectorXd& start, std::optional<Eigen::Index> held) {
  const DepthSurface::Prior prior = surface_prior(likelihood.data(), surface);
  Eigen::VectorXd parameters = start;
  Step here = evaluate(likelihood, prepared, surface, prior, parameters);
  double damping = 1e-3;
  for (int round = 0; round < 60; ++round) {
    const Eigen::VectorXd there = parameters + damped_move(here, damping, held);
    const Step next = evaluate(likelihood, prepared, surface, prior, there);
    const double gained = next.log_posterior - here.log_posterior;
    if (gained > 0) {
      parameters = there;
      here = next;
      damping = std::max(1e-9, damping / 5);
      if (gained < 1e-7) break;
    } else {
      damping *= 6;
      if (damping > 1e8 || (gained > -1e-9 && damping > 1e-2)) break;
    }
  }
  return {parameters, here.information, here.log_likelihood, here.log_posterior, 0};
}

Crest crest_of(const SurfaceLikelihood& likelihood, const SurfaceLikelihood::Prepared& prepared,
               const DepthSurface& surface, const SurfaceMode& mode) {
  const Eigen::Index along = surface.bowl_place() + 1;
  const Eigen::VectorXd covariances =
      mode.information.llt().solve(Eigen::VectorXd::Unit(surface.size(), along));
  const double step = std::sqrt(covariances[along]);
  const Eigen::VectorXd straight = covariances / step;
  std::vector<Eigen::VectorXd> bends(2 * kKnots + 1, Eigen::VectorXd::Zero(surface.size()));
  for (const int side : {-1, 1}) {
    Eigen::VectorXd parameters = mode.parameters;
    for (int knot = 1; knot <= kKnots; ++knot) {
      parameters =
          find_mode(likelihood, prepared, surface, parameters + side * straight, along).parameters;
      bends[static_cast<std::size_t>(kKnots + side * knot)] =
          parameters - mode.parameters - side * knot * straight;
    }
  }
  return {along, step, std::move(bends)};
}

}  // namespace fathom::fits
