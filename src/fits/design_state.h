// What the next run would teach: a linear Gaussian picture of the surface about its present
// estimate.
//
// The state is the joint covariance of the goals and of the loss at every site (a shape at a
// training length): coefficients of surface, level, bend and misfit with their priors, and each
// shape's own departure. Observing sites with noise covariance S conditions it,
//   C <- C - C_.o (C_oo + S)^-1 C_o. ,
// which is exact in the linear picture and needs no losses: the effect of runs can be told before
// they are made. The runs there are are replayed the same way.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fits/surface_likelihood.h"

namespace fathom::fits {

struct DesignSite {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  SurfacePlace place;
};

class DesignState {
 public:
  /// `goals`: rows of derivatives by the surface's parameters and the columns' coefficients.
  DesignState(const SurfaceColumns& columns, const SurfaceScales& scales,
              const DepthSurface& surface, const Eigen::VectorXd& parameters,
              const DepthSurface::Prior& prior, const Eigen::MatrixXd& goals,
              std::span<const DesignSite> sites);

  Eigen::Index goals() const { return goals_; }
  double goal_variance(Eigen::Index goal) const { return covariance_(goal, goal); }
  /// The covariance of what would be seen at these sites with this noise.
  Eigen::MatrixXd foreseen(std::span<const std::size_t> sites, const Eigen::MatrixXd& noise) const;
  /// The goal's variance if these sites were seen with this noise.
  double expected_variance(Eigen::Index goal, std::span<const std::size_t> sites,
                           const Eigen::MatrixXd& noise) const;
  void observe(std::span<const std::size_t> sites, const Eigen::MatrixXd& noise);

 private:
  Eigen::Index row_of(std::size_t site) const { return goals_ + static_cast<Eigen::Index>(site); }

  Eigen::Index goals_ = 0;
  Eigen::MatrixXd covariance_;  // goals, then sites
};

}  // namespace fathom::fits
