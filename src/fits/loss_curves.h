// Smooth curves of loss against size, one for every depth, fitted together.
//
//   ln loss = f(z) + g_L(z) + noise,   z = ln N scaled to [-1, 1]
//
// f is a polynomial all depths share (as rich as the runs allow: it carries the common shape of a
// loss curve), g_L a low-order departure of each depth. Differences between depths, which are
// what transitions are read from, thus stay smooth without bending the curves themselves. The model
// is linear, so its covariance is exact; the noise is the scatter of the runs about it, seeds
// included.
#pragma once

#include <Eigen/Core>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fits/run_point.h"

namespace fathom::fits {

class CurveFamily {
 public:
  struct Depth {
    std::int64_t layers = 0;
    double low = 0;  // ln N of its smallest and largest run
    double high = 0;
    std::size_t sizes = 0;
    // ln D = width_offset + width_slope ln N
    double width_offset = 0;
    double width_slope = 0.5;
  };

  /// One bootstrap replicate of the whole family.
  struct Replicate {
    Eigen::VectorXd coefficients;
    double noise = 0;
  };

  /// Absent, with the reason, when the runs leave no residual to separate noise from shape.
  static std::optional<CurveFamily> fit(std::span<const RunPoint> points, std::string& reason);

  const std::vector<Depth>& depths() const { return depths_; }
  std::size_t runs() const { return residuals_.size(); }
  int degrees_of_freedom() const { return degrees_of_freedom_; }
  int shared_degree() const { return shared_degree_; }
  int own_degree() const { return own_degree_; }
  /// Standard deviation of ln loss about the curves.
  double noise() const { return noise_; }
  const Eigen::VectorXd& coefficients() const { return coefficients_; }

  /// ln loss of a depth (by its place in depths()) at ln N; `error` is its standard error.
  double log_loss(std::size_t depth, double log_size) const;
  double error(std::size_t depth, double log_size) const;
  double width(std::size_t depth, double log_size) const;

  /// Coefficients c with c . coefficients() = ln loss(shallow) - ln loss(deep) at ln N: positive
  /// where the deeper network wins.
  Eigen::VectorXd gain_row(std::size_t shallow, std::size_t deep, double log_size) const;
  /// The derivative of that row with respect to ln N.
  Eigen::VectorXd gain_slope_row(std::size_t shallow, std::size_t deep, double log_size) const;
  /// Covariance of two linear functions of the coefficients.
  double covariance(const Eigen::VectorXd& a, const Eigen::VectorXd& b) const;

  /// Depths whose runs scatter more than kUneven times as much about their curve as the others':
  /// one noise for all then makes intervals with them too short and the others' too long.
  struct Scatter {
    std::int64_t layers = 0;
    double times = 1;
  };
  static constexpr double kUneven = 2.5;
  std::vector<Scatter> uneven() const;

  /// Runs more than four standard errors off their curve, and by how many.
  std::vector<std::pair<std::string, double>> strays() const;

  /// Refits to resampled residuals (scaled for the degrees of freedom they lost).
  std::vector<Replicate> bootstrap(std::size_t replicates, std::uint64_t seed) const;

 private:
  Eigen::VectorXd row(std::size_t depth, double log_size, bool derivative = false) const;
  void lay_out(std::span<const RunPoint> points);
  bool choose_degrees(std::span<const RunPoint> points, std::size_t sizes);
  void solve(std::span<const RunPoint> points);

  std::vector<Depth> depths_;
  double centre_ = 0;
  double half_range_ = 1;
  int shared_degree_ = 0;
  int own_degree_ = 0;
  int degrees_of_freedom_ = 0;
  double noise_ = 0;
  Eigen::MatrixXd design_;
  Eigen::MatrixXd solver_;  // coefficients = solver_ * ln losses
  Eigen::MatrixXd unit_covariance_;
  Eigen::VectorXd coefficients_;
  Eigen::VectorXd residuals_;
  std::vector<std::string> ids_;
  std::vector<std::int64_t> layers_;  // of each run
};

}  // namespace fathom::fits
