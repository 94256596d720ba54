#include "fits/loss_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/counts.h"
#include "core/random.h"
#include "fits/decompositions.h"

namespace fathom::fits {
namespace {

/// Sizes closer than this in ln N are one rung of a ladder: a shared curve cannot separate them.
constexpr double kSameGridSize = 0.05;

std::size_t count_sizes(std::vector<double> log_sizes) {
  std::sort(log_sizes.begin(), log_sizes.end());
  std::size_t count = 0;
  double last = -1e300;
  for (const double x : log_sizes) {
    if (x - last > kSameGridSize) {
      ++count;
      last = x;
    }
  }
  return count;
}

}  // namespace

std::optional<CurveFamily> CurveFamily::fit(std::span<const RunPoint> points, std::string& reason) {
  std::map<std::int64_t, std::vector<double>> sizes;
  for (const RunPoint& point : points) sizes[point.layers].push_back(std::log(point.params));
  std::erase_if(sizes, [](const auto& depth) { return count_sizes(depth.second) < 2; });
  std::vector<RunPoint> used;
  std::vector<double> all;
  for (const RunPoint& point : points) {
    if (!sizes.contains(point.layers)) continue;
    used.push_back(point);
    all.push_back(std::log(point.params));
  }
  if (sizes.size() < 2) {
    reason = fmt::format("{} depth{} with two or more sizes; a transition needs two",
                         sizes.empty() ? "no" : "one", sizes.empty() ? "" : " only");
    return std::nullopt;
  }
  CurveFamily family;
  for (const auto& [layers, log_sizes] : sizes) {
    const auto [low, high] = std::minmax_element(log_sizes.begin(), log_sizes.end());
    family.depths_.push_back({layers, *low, *high, count_sizes(log_sizes), 0, 0.5});
  }
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  family.centre_ = (*low + *high) / 2;
  family.half_range_ = (*high - *low) / 2;
  if (!family.choose_degrees(used, count_sizes(all))) {
    reason = fmt::format(
        "{} runs at {} depths leave nothing to tell noise from shape; add sizes "
        "or seeds",
        used.size(), sizes.size());
    return std::nullopt;
  }
  family.solve(used);
  return family;
}

Eigen::VectorXd CurveFamily::row(std::size_t depth, double log_size, bool derivative) const {
  const double z = (log_size - centre_) / half_range_;
  const int own = own_degree_ + 1;
  const auto departures = static_cast<int>(depths_.size()) - 1;
  Eigen::VectorXd values = Eigen::VectorXd::Zero(shared_degree_ + 1 + departures * own);
  const auto power = [&](int k) {
    if (!derivative) return std::pow(z, k);
    return k == 0 ? 0.0 : k * std::pow(z, k - 1) / half_range_;
  };
  for (int k = 0; k <= shared_degree_; ++k) values[k] = power(k);
  if (depth > 0) {
    const int start = shared_degree_ + 1 + (static_cast<int>(depth) - 1) * own;
    for (int k = 0; k < own; ++k) values[start + k] = power(k);
  }
  return values;
}

void CurveFamily::lay_out(std::span<const RunPoint> points) {
  const auto rows = as_signed(points.size());
  design_.resize(rows, row(0, 0).size());
  for (Eigen::Index i = 0; i < rows; ++i) {
    const RunPoint& point = points[i];
    const auto place = std::find_if(depths_.begin(), depths_.end(), [&](const Depth& depth) {
      return depth.layers == point.layers;
    });
    design_.row(i) = row(as_size(place - depths_.begin()), std::log(point.params)).transpose();
  }
}

/// The richest departure the sizes of a depth can support, then the richest shared shape that
/// leaves a fifth of the runs, and at least three, as residual. Criteria such as AICc choose
/// simpler curves on small studies, whose bias then breaks the intervals: coverage of 85 instead of
/// 95 in 100.
bool CurveFamily::choose_degrees(std::span<const RunPoint> points, std::size_t sizes) {
  std::size_t fewest = sizes;
  for (const Depth& depth : depths_) fewest = std::min(fewest, depth.sizes);
  const auto runs = static_cast<int>(points.size());
  const int needed = std::max(3, (runs + 4) / 5);
  const int most_shared = std::min(6, static_cast<int>(sizes) - 1);
  for (own_degree_ = std::clamp(static_cast<int>(fewest / 2), 1, 3); own_degree_ >= 1;
       --own_degree_) {
    const int least_shared = std::min(own_degree_ + 1, most_shared);
    for (shared_degree_ = most_shared; shared_degree_ >= least_shared; --shared_degree_) {
      const int coefficients =
          shared_degree_ + 1 + (static_cast<int>(depths_.size()) - 1) * (own_degree_ + 1);
      degrees_of_freedom_ = runs - coefficients;
      if (degrees_of_freedom_ < needed) continue;
      lay_out(points);
      if (numerical_rank(design_) == coefficients) return true;
    }
  }
  return false;
}

void CurveFamily::solve(std::span<const RunPoint> points) {
  const Eigen::Index rows = design_.rows();
  Eigen::VectorXd log_losses(rows);
  for (Eigen::Index i = 0; i < rows; ++i) {
    log_losses[i] = std::log(points[i].loss);
    ids_.push_back(points[i].id);
    layers_.push_back(points[i].layers);
  }
  solver_ = pseudo_inverse(design_);
  unit_covariance_ = solver_ * solver_.transpose();
  coefficients_ = solver_ * log_losses;
  residuals_ = log_losses - design_ * coefficients_;
  noise_ = std::sqrt(residuals_.squaredNorm() / degrees_of_freedom_);
  for (Depth& depth : depths_) {
    // Two points suffice in principle; a line through all runs of the depth averages roundings.
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (const RunPoint& point : points) {
      if (point.layers != depth.layers) continue;
      const double u = std::log(point.params);
      const double v = std::log(as_double(point.width));
      n += 1;
      x += u;
      y += v;
      xx += u * u;
      xy += u * v;
    }
    depth.width_slope = (n * xy - x * y) / (n * xx - x * x);
    depth.width_offset = (y - depth.width_slope * x) / n;
  }
}

double CurveFamily::log_loss(std::size_t depth, double log_size) const {
  return row(depth, log_size).dot(coefficients_);
}

double CurveFamily::error(std::size_t depth, double log_size) const {
  const Eigen::VectorXd values = row(depth, log_size);
  return std::sqrt(covariance(values, values));
}

double CurveFamily::width(std::size_t depth, double log_size) const {
  return std::exp(depths_[depth].width_offset + depths_[depth].width_slope * log_size);
}

Eigen::VectorXd CurveFamily::gain_row(std::size_t shallow, std::size_t deep,
                                      double log_size) const {
  return row(shallow, log_size) - row(deep, log_size);
}

Eigen::VectorXd CurveFamily::gain_slope_row(std::size_t shallow, std::size_t deep,
                                            double log_size) const {
  return row(shallow, log_size, true) - row(deep, log_size, true);
}

double CurveFamily::covariance(const Eigen::VectorXd& a, const Eigen::VectorXd& b) const {
  return noise_ * noise_ * a.dot(unit_covariance_ * b);
}

std::vector<CurveFamily::Scatter> CurveFamily::uneven() const {
  constexpr double kLeastFreedom = 2;  // fewer residual degrees of freedom say nothing
  std::vector<Scatter> found;
  for (const Depth& depth : depths_) {
    double own = 0, own_freedom = 0, others = 0, others_freedom = 0;
    for (Eigen::Index i = 0; i < residuals_.size(); ++i) {
      const bool mine = layers_[i] == depth.layers;
      (mine ? own : others) += residuals_[i] * residuals_[i];
      (mine ? own_freedom : others_freedom) += 1 - design_.row(i).dot(solver_.col(i));
    }
    if (own_freedom < kLeastFreedom || others_freedom < kLeastFreedom) continue;
    const double times = std::sqrt(own / own_freedom / (others / others_freedom));
    if (times > kUneven) found.push_back({depth.layers, times});
  }
  return found;
}

std::vector<std::pair<std::string, double>> CurveFamily::strays() const {
  constexpr double kFar = 4;
  std::vector<std::pair<std::string, double>> far;
  for (Eigen::Index i = 0; i < residuals_.size(); ++i) {
    const double leverage = design_.row(i).dot(solver_.col(i));
    const double score = residuals_[i] / (noise_ * std::sqrt(std::max(1e-9, 1 - leverage)));
    if (std::fabs(score) > kFar) far.emplace_back(ids_[i], score);
  }
  return far;
}

std::vector<CurveFamily::Replicate> CurveFamily::bootstrap(std::size_t replicates,
                                                           std::uint64_t seed) const {
  const auto runs = as_size(residuals_.size());
  const double scale = std::sqrt(as_double(runs) / degrees_of_freedom_);
  std::vector<Replicate> result;
  result.reserve(replicates);
  Eigen::VectorXd drawn(residuals_.size());
  for (std::size_t r = 0; r < replicates; ++r) {
    const RandomStream random(seed, r);
    for (std::uint64_t i = 0; i < runs; ++i) {
      drawn[as_signed(i)] = scale * residuals_[as_signed(random.below(i, runs))];
    }
    const Eigen::VectorXd shift = solver_ * drawn;
    const double left = (drawn - design_ * shift).squaredNorm();
    result.push_back({coefficients_ + shift, std::sqrt(left / degrees_of_freedom_)});
  }
  return result;
}

}  // namespace fathom::fits
