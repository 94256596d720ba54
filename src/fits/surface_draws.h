// Whole surfaces drawn from the posterior, all forms together, and what is read from them.
#pragma once

#include <Eigen/Core>
#include <optional>
#include <vector>

#include "core/interval.h"
#include "fits/surface_posterior.h"

namespace fathom::fits {

/// Values with weights that sum to one; quantiles may be infinite.
struct WeightedSample {
  std::vector<std::pair<double, double>> values;  // value, weight
  void add(double value, double weight) { values.emplace_back(value, weight); }
  void sort();
  /// After sort().
  double quantile(double probability) const;
  Interval interval() const { return {quantile(0.025), quantile(0.975)}; }
};

/// What an interval says within a range beyond which values are infinite: an end that lies outside
/// on its own side is no bound, one that lies wholly on the other side is the range's end.
struct Bounds {
  std::optional<double> low;
  std::optional<double> high;
};
Bounds bounds_within(Interval interval, Interval range);

class SurfaceDraws {
 public:
  /// `count` equally likely surfaces, of all forms by their probability.
  SurfaceDraws(const SurfacePosterior& posterior, std::size_t count, std::uint64_t seed);

  std::size_t size() const { return draws_.size(); }
  /// The ln depth of least loss at ln N in every draw; -+infinity beyond `depths`.
  std::vector<double> best_log_depths(double log_size, Interval depths) const;
  /// The ln N up to which the shallower of two depths (places in the data's list) wins in every
  /// draw; -infinity when it never does within the sizes, +infinity when it does to the end.
  std::vector<double> crossings(std::size_t shallow, std::size_t deep) const;

 private:
  struct Draw {
    const FormPosterior* form = nullptr;
    const WeightedDraw* draw = nullptr;
    Eigen::VectorXd misfit;  // coefficients times their deviation; empty for none
  };
  void scan_sizes();

  const SurfacePosterior& posterior_;
  std::vector<Draw> draws_;
  std::vector<Eigen::MatrixXf> losses_;  // a draw's ln loss less the level, by size and depth
};

}  // namespace fathom::fits
