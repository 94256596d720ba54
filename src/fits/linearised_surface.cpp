#include "fits/linearised_surface.h"

#include <Eigen/Cholesky>
#include <cmath>

namespace fathom::fits {
namespace {

// Variance of the level's fixed coefficients before any run: ln loss within 2.
constexpr double kFixedVariance = 4;

}  // namespace

LinearisedSurface::LinearisedSurface(const SurfaceColumns& columns, const SurfaceScales& scales,
                                     const DepthSurface& surface, const Eigen::VectorXd& parameters,
                                     const DepthSurface::Prior& prior, const Eigen::MatrixXd& goals,
                                     std::span<const SurfaceSite> sites)
    : goals_(goals.rows()) {
  const Eigen::Index own = surface.size();
  const auto count = static_cast<Eigen::Index>(sites.size());
  Eigen::VectorXd variances(own + columns.size());
  variances.head(own) = prior.deviation.array().square();
  variances.tail(columns.size()) = columns.deviations(scales).array().square();
  variances.segment(own, columns.fixed()).setConstant(kFixedVariance);
  Eigen::MatrixXd rows(goals_ + count, own + columns.size());
  rows.topRows(goals_) = goals;
  Eigen::RowVectorXd gradient(own);
  for (Eigen::Index i = 0; i < count; ++i) {
    const SurfacePlace& place = sites[static_cast<std::size_t>(i)].place;
    surface.penalty(parameters, place, gradient);
    rows.row(goals_ + i) << gradient, columns.at(place);
  }
  covariance_ = rows * variances.asDiagonal() * rows.transpose();
  const double shape = std::pow(scales.shape_deviation(), 2);
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = 0; j < count; ++j) {
      const SurfaceSite& a = sites[static_cast<std::size_t>(i)];
      const SurfaceSite& b = sites[static_cast<std::size_t>(j)];
      if (a.layers == b.layers && a.width == b.width) covariance_(goals_ + i, goals_ + j) += shape;
    }
  }
}

Eigen::MatrixXd LinearisedSurface::predictive_covariance(std::span<const std::size_t> sites,
                                                         const Eigen::MatrixXd& noise) const {
  Eigen::MatrixXd seen = noise;
  for (Eigen::Index i = 0; i < seen.rows(); ++i) {
    for (Eigen::Index j = 0; j < seen.cols(); ++j) {
      seen(i, j) += covariance_(row_of(sites[static_cast<std::size_t>(i)]),
                                row_of(sites[static_cast<std::size_t>(j)]));
    }
  }
  return seen;
}

double LinearisedSurface::expected_variance(Eigen::Index goal, std::span<const std::size_t> sites,
                                            const Eigen::MatrixXd& noise) const {
  const Eigen::MatrixXd seen = predictive_covariance(sites, noise);
  Eigen::VectorXd with(seen.rows());
  for (Eigen::Index i = 0; i < with.size(); ++i) {
    with[i] = covariance_(goal, row_of(sites[static_cast<std::size_t>(i)]));
  }
  if (with.size() == 1) return covariance_(goal, goal) - with[0] * with[0] / seen(0, 0);
  return covariance_(goal, goal) - with.dot(seen.llt().solve(with));
}

void LinearisedSurface::observe(std::span<const std::size_t> sites, const Eigen::MatrixXd& noise) {
  const Eigen::MatrixXd seen = predictive_covariance(sites, noise);
  Eigen::MatrixXd with(covariance_.rows(), seen.cols());
  for (Eigen::Index j = 0; j < with.cols(); ++j) {
    with.col(j) = covariance_.col(row_of(sites[static_cast<std::size_t>(j)]));
  }
  if (with.cols() == 1) {
    covariance_.noalias() -= (with / seen(0, 0)) * with.transpose();
  } else {
    covariance_.noalias() -= with * seen.llt().solve(with.transpose());
  }
}

}  // namespace fathom::fits
