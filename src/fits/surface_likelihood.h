// The likelihood of all runs under a loss surface, with everything linear integrated out.
//
//   ln loss = g(x, z) + penalty(x, u, z; theta) + delta(x, u, z) + shape + noise
//
//   g        a quadratic in ln N (and in the length), plus a smooth random bend that all depths
//            share
//   penalty  depth_surface.h
//   delta    misfit: a smooth random function of size and depth for whatever the law and the bowl
//            do not capture; its size is estimated from the runs, so a surface of another shape
//            widens every interval instead of passing unnoticed
//   shape    what sets one shape apart from its neighbours, common to its repeats
//   noise    sigma_L N^s e^(tz) e, a deviation for each depth, shrunk towards a common one (partial
//            pooling: ln(sigma_L / sigma) has a Student prior, so that one outlying depth is not
//            pulled in) and changing with size and training length; the lengths of one trajectory
//            are correlated by rho
//
// With c the coefficients of g and delta (flat or standard normal), A their columns whitened by the
// noise covariance R of the row means, e the whitened residual and M = A'A + prior precision,
//   ln p(y | theta, scales) = -(ln|R| + ln|M| + e'e - e'A M^-1 A'e) / 2 + (repeats' scatter).
#pragma once

#include <Eigen/Cholesky>

#include "fits/smooth_basis.h"
#include "fits/surface_data.h"

namespace fathom::fits {

/// Best depths are looked for this far beyond the depths trained, in ln L, so misfit reaches there.
inline constexpr double kBeyondDepths = 0.7;

/// Deviations of everything random, as logarithms.
struct SurfaceScales {
  double log_noise = 0;        // ln sigma of an ordinary depth, mid-size, longest training
  Eigen::VectorXd log_depths;  // ln(sigma_L / sigma), one per depth
  double noise_by_size = 0;    // d ln sigma / d ln N
  double noise_by_length = 0;  // d ln sigma / dz
  double log_shape = 0;        // ln(shape deviation / sigma)
  double log_bend = 0;         // ln of the bend's deviation
  double log_misfit = 0;       // ln(delta's deviation / sigma)
  double length_logit = 0;     // ln(rho / (1 - rho))

  /// Of one run; `off` is x less the middle of the sizes.
  double ordinary_noise(double off, double z) const;
  double noise(std::size_t depth, double off, double z) const;
  double shape_deviation() const;
  double misfit_deviation() const;
  double length_correlation() const;
};

/// The columns of g and delta at any place: those of g are the fixed ones, then the bend's.
class SurfaceColumns {
 public:
  struct Range {
    Interval log_size;
    Interval log_depth;
    Interval length;
    int lengths = 1;  // how many the runs were trained to
  };
  explicit SurfaceColumns(const Range& range);

  Eigen::Index fixed() const { return fixed_; }
  Eigen::Index bends() const { return bend_.size(); }
  Eigen::Index misfits() const { return misfit_.size(); }
  Eigen::Index size() const { return fixed_ + bends() + misfits(); }
  Eigen::RowVectorXd level(const SurfacePlace& place) const;
  Eigen::RowVectorXd misfit(const SurfacePlace& place) const { return misfit_.at(place); }
  /// Level, then misfit.
  Eigen::RowVectorXd at(const SurfacePlace& place) const;
  /// Deviations of the coefficients: 1 for the fixed ones.
  Eigen::VectorXd deviations(const SurfaceScales& scales) const;

 private:
  Range range_;
  Eigen::Index fixed_ = 0;
  SmoothLine bend_;
  SmoothSurface misfit_;
};

class SurfaceLikelihood {
 public:
  explicit SurfaceLikelihood(SurfaceData data);

  const SurfaceData& data() const { return data_; }
  Eigen::Index rows() const { return static_cast<Eigen::Index>(data_.rows.size()); }
  const SurfaceColumns& columns() const { return columns_; }
  Eigen::Index coefficients() const { return columns_.size(); }
  const Eigen::VectorXd& means() const { return means_; }

  /// What depends on the scales alone.
  struct Prepared {
    SurfaceScales scales;
    std::vector<Eigen::MatrixXd> factors;  // Cholesky factor of each shape's block of R
    Eigen::VectorXd deviations;            // of the coefficients
    Eigen::MatrixXd design;                // A
    Eigen::LLT<Eigen::MatrixXd> normal;    // M
    double log_determinants = 0;           // ln|R| + ln|M|
    double repeats = 0;                    // ln likelihood of the repeats' scatter
  };
  Prepared prepare(const SurfaceScales& scales) const;
  void whiten(const Prepared& prepared, Eigen::Ref<Eigen::MatrixXd> columns) const;
  /// e'e - e'A M^-1 A'e of a whitened residual.
  static double quadratic(const Prepared& prepared, const Eigen::VectorXd& whitened);

  /// Penalties of all rows, and their Jacobian.
  Eigen::VectorXd penalties(const DepthSurface& surface, const Eigen::VectorXd& parameters) const;
  Eigen::VectorXd penalties(const DepthSurface& surface, const Eigen::VectorXd& parameters,
                            Eigen::MatrixXd& jacobian) const;

  /// The covariance of one trajectory's noise over its lengths.
  Eigen::MatrixXd noise_covariance(const ShapeBlock& block, const RepeatUnit& unit,
                                   const SurfaceScales& scales) const;
  /// The covariance of a shape's row means.
  Eigen::MatrixXd block_covariance(const ShapeBlock& block, const SurfaceScales& scales) const;

 private:
  double repeat_likelihood(const SurfaceScales& scales) const;

  SurfaceData data_;
  SurfaceColumns columns_;
  Eigen::MatrixXd at_rows_;  // the columns
  Eigen::VectorXd means_;
};

/// The rows of some shapes only, with the ranges of all.
SurfaceData keep_shapes(const SurfaceData& data, const std::vector<bool>& kept);

}  // namespace fathom::fits
