// Smooth random functions of size, depth and length as a short sum of basis functions.
//
// A Gaussian process with kernel exp(-(t - t')^2 / 2 l^2), or the mean of such kernels of several
// lengths l, equals, on an interval and to three digits, sum_j b_j f_j(t) with independent standard
// normal b_j: f_j from the eigenvectors of the kernel on a grid (Nystroem). Products of such
// functions give the kernel that is the product over size, depth and length. Low rank makes a
// likelihood cost (rows x functions^2) instead of rows^3.
#pragma once

#include <Eigen/Core>
#include <array>
#include <vector>

#include "core/interval.h"
#include "fits/depth_surface.h"

namespace fathom::fits {

/// One coordinate: f_j(t), j < size().
class SmoothLine {
 public:
  SmoothLine(Interval range, std::vector<double> lengths);
  Eigen::Index size() const { return weights_.cols(); }
  Eigen::VectorXd at(double t) const;
  /// The share of the variance that the j-th function carries.
  double share(Eigen::Index j) const { return shares_[j]; }

 private:
  Eigen::VectorXd grid_;
  Eigen::MatrixXd weights_;  // f(t) = k(t, grid) * weights
  Eigen::VectorXd shares_;
  std::vector<double> lengths_;
};

/// Functions of (x, u, z).
class SmoothSurface {
 public:
  SmoothSurface(SmoothLine size, SmoothLine depth, SmoothLine length);
  Eigen::Index size() const { return static_cast<Eigen::Index>(terms_.size()); }
  Eigen::RowVectorXd at(const SurfacePlace& place) const;

 private:
  SmoothLine size_;
  SmoothLine depth_;
  SmoothLine length_;
  std::vector<std::array<Eigen::Index, 3>> terms_;
};

}  // namespace fathom::fits
