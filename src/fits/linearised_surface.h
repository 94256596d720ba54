// What new runs would teach: the surface linearised about its present estimate, all Gaussian.
//
// The state is the joint covariance of the goals and of the loss at every site (a shape at a
// training length), from the coefficients of surface, level, bend and misfit with their priors and
// from each shape's own deviation. Observing sites with noise covariance S conditions it,
//   C <- C - C_.o (C_oo + S)^-1 C_o. ,
// which is exact for the linearised surface and does not involve the losses: the effect of runs can
// be computed before they are made. Runs already made are replayed in the same way.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fits/surface_likelihood.h"

namespace fathom::fits {

struct SurfaceSite {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  SurfacePlace place;
};

class LinearisedSurface {
 public:
  /// `goals`: rows of derivatives with respect to the surface's parameters and columns'
  /// coefficients.
  LinearisedSurface(const SurfaceColumns& columns, const SurfaceScales& scales,
                    const DepthSurface& surface, const Eigen::VectorXd& parameters,
                    const DepthSurface::Prior& prior, const Eigen::MatrixXd& goals,
                    std::span<const SurfaceSite> sites);

  Eigen::Index goals() const { return goals_; }
  double goal_variance(Eigen::Index goal) const { return covariance_(goal, goal); }
  /// The covariance of what would be observed at these sites with this noise.
  Eigen::MatrixXd predictive_covariance(std::span<const std::size_t> sites,
                                        const Eigen::MatrixXd& noise) const;
  /// The goal's variance after observing these sites with this noise.
  double expected_variance(Eigen::Index goal, std::span<const std::size_t> sites,
                           const Eigen::MatrixXd& noise) const;
  void observe(std::span<const std::size_t> sites, const Eigen::MatrixXd& noise);

 private:
  Eigen::Index row_of(std::size_t site) const { return goals_ + static_cast<Eigen::Index>(site); }

  Eigen::Index goals_ = 0;
  Eigen::MatrixXd covariance_;  // goals, then sites
};

}  // namespace fathom::fits
