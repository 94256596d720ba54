#include "fits/smooth_basis.h"

#include <algorithm>
#include <cmath>

#include "fits/decompositions.h"

namespace fathom::fits {
namespace {

constexpr int kGrid = 24;
// Functions that carry less of the variance are left out.
constexpr double kLeastShare = 1e-3;

double kernel(double distance, const std::vector<double>& lengths) {
  double sum = 0;
  for (const double length : lengths) {
    const double t = distance / length;
    sum += std::exp(-t * t / 2);
  }
  return sum / static_cast<double>(lengths.size());
}

}  // namespace

SmoothLine::SmoothLine(Interval range, std::vector<double> lengths) : lengths_(std::move(lengths)) {
  const double extent = range.high - range.low;
  const int count = extent > 1e-6 ? kGrid : 1;
  grid_ = Eigen::VectorXd::LinSpaced(count, range.low, range.high);
  Eigen::MatrixXd gram(count, count);
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < count; ++j) gram(i, j) = kernel(grid_[i] - grid_[j], lengths_);
  }
  const SymmetricEigen eigen = symmetric_eigen(gram);
  const Eigen::VectorXd values = eigen.values.reverse();
  Eigen::Index kept = 0;
  while (kept < count && values[kept] > kLeastShare * count) ++kept;
  shares_ = values.head(kept) / count;
  weights_.resize(count, kept);
  for (Eigen::Index j = 0; j < kept; ++j) {
    weights_.col(j) = eigen.vectors.col(count - 1 - j) / std::sqrt(values[j]);
  }
}

Eigen::VectorXd SmoothLine::at(double t) const {
  Eigen::VectorXd near(grid_.size());
  for (Eigen::Index i = 0; i < grid_.size(); ++i) near[i] = kernel(t - grid_[i], lengths_);
  return weights_.transpose() * near;
}

SmoothSurface::SmoothSurface(SmoothLine size, SmoothLine depth, SmoothLine length)
    : size_(std::move(size)), depth_(std::move(depth)), length_(std::move(length)) {
  for (Eigen::Index i = 0; i < size_.size(); ++i) {
    for (Eigen::Index j = 0; j < depth_.size(); ++j) {
      for (Eigen::Index k = 0; k < length_.size(); ++k) {
        if (size_.share(i) * depth_.share(j) * length_.share(k) > kLeastShare) {
          terms_.push_back({i, j, k});
        }
      }
    }
  }
}

Eigen::RowVectorXd SmoothSurface::at(const SurfacePlace& place) const {
  const Eigen::VectorXd x = size_.at(place.x);
  const Eigen::VectorXd u = depth_.at(place.u);
  const Eigen::VectorXd z = length_.at(place.z);
  Eigen::RowVectorXd values(size());
  for (std::size_t t = 0; t < terms_.size(); ++t) {
    const auto& [i, j, k] = terms_[t];
    values[static_cast<Eigen::Index>(t)] = x[i] * u[j] * z[k];
  }
  return values;
}

}  // namespace fathom::fits
