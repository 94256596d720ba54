#include "fits/surface_likelihood.h"

#include <algorithm>
#include <cmath>

namespace fathom::fits {
namespace {

// How fast unknown functions may change: the bend that all depths share over a factor of 4.5 in
// size, misfit over a factor of 4.5 in size, 1.6 in depth, 4.5 in length.
constexpr double kBendLength = 1.5;
constexpr double kMisfitSize = 1.5;
constexpr double kMisfitDepth = 0.5;
constexpr double kMisfitLength = 1.5;
// The fixed coefficients' prior is flat; this much keeps poor designs solvable.
constexpr double kFlat = 1e-4;

std::size_t count_lengths(const SurfaceData& data) {
  std::vector<double> z;
  for (const SurfaceRow& row : data.rows) z.push_back(row.place.z);
  std::sort(z.begin(), z.end());
  std::size_t count = 0;
  double last = -1e300;
  for (const double value : z) {
    if (value - last > 0.1) ++count, last = value;
  }
  return count;
}

}  // namespace

double SurfaceScales::noise(std::size_t depth) const {
  return std::exp(log_noise + log_depths[static_cast<Eigen::Index>(depth)]);
}
double SurfaceScales::shape_deviation() const {
  return std::exp(log_noise + log_shape);
}
double SurfaceScales::misfit_deviation() const {
  return std::exp(log_noise + log_misfit);
}
double SurfaceScales::length_correlation() const {
  return 1 / (1 + std::exp(-length_logit));
}

SurfaceLikelihood::SurfaceLikelihood(SurfaceData data) : data_(std::move(data)) {
  bend_ = std::make_shared<SmoothLine>(data_.log_size, kBendLength);
  misfit_ = std::make_shared<SmoothSurface>(SmoothLine(data_.log_size, kMisfitSize),
                                            SmoothLine(data_.log_depth, kMisfitDepth),
                                            SmoothLine(data_.length, kMisfitLength));
  curved_length_ = count_lengths(data_) > 2;
  fixed_ = 3 + (data_.length_rule.differs ? (curved_length_ ? 3 : 2) : 0);
  bends_ = bend_->size();
  columns_.resize(rows(), fixed_ + bends_ + misfits());
  means_.resize(rows());
  for (Eigen::Index i = 0; i < rows(); ++i) {
    const SurfaceRow& row = data_.rows[static_cast<std::size_t>(i)];
    columns_.row(i) << level_columns(row.place), misfit_columns(row.place);
    means_[i] = row.mean;
  }
}

Eigen::RowVectorXd SurfaceLikelihood::level_columns(const SurfacePlace& place) const {
  const double half = std::max(1e-3, (data_.log_size.high - data_.log_size.low) / 2);
  const double t = (place.x - data_.centre()) / half;
  Eigen::RowVectorXd values(fixed_ + bends_);
  values.head(3) << 1, t, t * t;
  if (data_.length_rule.differs) {
    values.segment(3, 2) << place.z, place.z * t;
    if (curved_length_) values[5] = place.z * place.z;
  }
  values.tail(bends_) = bend_->at(place.x).transpose();
  return values;
}

Eigen::MatrixXd SurfaceLikelihood::block_covariance(const ShapeBlock& block,
                                                    const SurfaceScales& scales) const {
  const double noise = std::pow(scales.noise(block.depth), 2);
  const double shared = data_.length_rule.differs ? scales.length_correlation() : 0;
  Eigen::MatrixXd covariance =
      Eigen::MatrixXd::Constant(block.rows, block.rows, std::pow(scales.shape_deviation(), 2));
  for (const RepeatUnit& unit : block.units) {
    const Eigen::Index start = unit.first - block.first;
    auto part = covariance.block(start, start, unit.lengths, unit.lengths);
    part.array() += shared * noise / unit.repeats;
    part.diagonal().array() += (1 - shared) * noise / unit.repeats;
  }
  return covariance;
}

double SurfaceLikelihood::repeat_likelihood(const SurfaceScales& scales) const {
  const double shared = data_.length_rule.differs ? scales.length_correlation() : 0;
  double sum = 0;
  for (const ShapeBlock& block : data_.shapes) {
    const double noise = std::pow(scales.noise(block.depth), 2);
    for (const RepeatUnit& unit : block.units) {
      if (unit.repeats < 2) continue;
      const auto lengths = static_cast<double>(unit.lengths);
      const double of_average = noise * (1 + (lengths - 1) * shared);
      const double of_rest = noise * (1 - shared);
      sum -= (unit.repeats - 1) * (std::log(of_average) + (lengths - 1) * std::log(of_rest));
      sum -= unit.scatter_of_averages / of_average + unit.scatter_of_rest / of_rest;
    }
  }
  return sum / 2;
}

void SurfaceLikelihood::whiten(const Prepared& prepared,
                               Eigen::Ref<Eigen::MatrixXd> columns) const {
  for (std::size_t s = 0; s < data_.shapes.size(); ++s) {
    const ShapeBlock& block = data_.shapes[s];
    auto part = columns.middleRows(block.first, block.rows);
    if (block.rows == 1) {
      part /= prepared.factors[s](0, 0);
    } else {
      prepared.factors[s].triangularView<Eigen::Lower>().solveInPlace(part);
    }
  }
}

SurfaceLikelihood::Prepared SurfaceLikelihood::prepare(const SurfaceScales& scales) const {
  Prepared prepared;
  prepared.scales = scales;
  for (const ShapeBlock& block : data_.shapes) {
    prepared.factors.push_back(block_covariance(block, scales).llt().matrixL());
    prepared.log_determinants += 2 * prepared.factors.back().diagonal().array().log().sum();
  }
  prepared.column_scales = Eigen::VectorXd::Ones(coefficients());
  prepared.column_scales.segment(fixed_, bends_).setConstant(std::exp(scales.log_bend));
  prepared.column_scales.tail(misfits()).setConstant(scales.misfit_deviation());
  prepared.design = columns_ * prepared.column_scales.asDiagonal();
  whiten(prepared, prepared.design);
  Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(coefficients(), coefficients());
  normal.selfadjointView<Eigen::Lower>().rankUpdate(prepared.design.transpose());
  normal.diagonal().head(fixed_).array() += kFlat;
  normal.diagonal().tail(coefficients() - fixed_).array() += 1;
  prepared.normal.compute(normal);
  prepared.log_determinants += 2 * prepared.normal.matrixLLT().diagonal().array().log().sum();
  prepared.repeats = repeat_likelihood(scales);
  return prepared;
}

double SurfaceLikelihood::quadratic(const Prepared& prepared, const Eigen::VectorXd& whitened) {
  const Eigen::VectorXd projected =
      prepared.normal.matrixL().solve(prepared.design.transpose() * whitened);
  return whitened.squaredNorm() - projected.squaredNorm();
}

Eigen::VectorXd SurfaceLikelihood::penalties(const DepthSurface& surface,
                                             const Eigen::VectorXd& parameters) const {
  Eigen::VectorXd values(rows());
  const DepthSurface::Sides sides = surface.sides(parameters);
  for (Eigen::Index i = 0; i < rows(); ++i) {
    const SurfacePlace& place = data_.rows[static_cast<std::size_t>(i)].place;
    values[i] = surface.section(parameters, sides, place.x, place.z).at(place.u);
  }
  return values;
}

Eigen::VectorXd SurfaceLikelihood::penalties(const DepthSurface& surface,
                                             const Eigen::VectorXd& parameters,
                                             Eigen::MatrixXd& jacobian) const {
  jacobian.resize(rows(), surface.size());
  Eigen::VectorXd values(rows());
  Eigen::RowVectorXd gradient(surface.size());
  for (Eigen::Index i = 0; i < rows(); ++i) {
    values[i] =
        surface.penalty(parameters, data_.rows[static_cast<std::size_t>(i)].place, gradient);
    jacobian.row(i) = gradient;
  }
  return values;
}

SurfaceData keep_shapes(const SurfaceData& data, const std::vector<bool>& kept) {
  SurfaceData part = data;
  part.rows.clear();
  part.shapes.clear();
  part.rungs.clear();
  for (std::size_t s = 0; s < data.shapes.size(); ++s) {
    if (!kept[s]) continue;
    ShapeBlock block = data.shapes[s];
    const auto shift = static_cast<Eigen::Index>(part.rows.size()) - block.first;
    const auto from = data.rows.begin() + block.first;
    part.rows.insert(part.rows.end(), from, from + block.rows);
    block.first += shift;
    for (RepeatUnit& unit : block.units) unit.first += shift;
    part.shapes.push_back(std::move(block));
  }
  return part;
}

}  // namespace fathom::fits
