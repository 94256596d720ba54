#include "fits/surface_likelihood.h"

#include <algorithm>
#include <cmath>

namespace fathom::fits {
namespace {

// How fast unknown functions may change: the bend that all depths share over a factor of 4.5 in
// size, misfit over a factor of 3.3 in size and of 4.5 in length. Over depth a third of its
// variance changes over a factor of 1.5 and moves the best depth at a size; two thirds change over
// a factor of 2.7 and look like another law.
constexpr double kBendLength = 1.5;
constexpr double kMisfitSize = 1.2;
const std::vector<double> kMisfitDepth{0.4, 1, 1};
constexpr double kMisfitLength = 1.5;
// The fixed coefficients' prior is flat; this much keeps poor designs solvable.
constexpr double kFlat = 1e-4;

SurfaceColumns::Range range_of(const SurfaceData& data) {
  std::vector<double> z;
  for (const SurfaceRow& row : data.rows) z.push_back(row.place.z);
  std::sort(z.begin(), z.end());
  SurfaceColumns::Range range{data.log_size, data.log_depth, data.length, 0};
  double last = -1e300;
  for (const double value : z) {
    if (value - last > 0.1) ++range.lengths, last = value;
  }
  if (!data.length_rule.differs) range.lengths = 1;
  return range;
}

}  // namespace

double SurfaceScales::ordinary_noise(double off, double z) const {
  return std::exp(log_noise + noise_by_size * off + noise_by_length * z);
}
double SurfaceScales::noise(std::size_t depth, double off, double z) const {
  return ordinary_noise(off, z) * std::exp(log_depths[static_cast<Eigen::Index>(depth)]);
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

SurfaceColumns::SurfaceColumns(const Range& range)
    : range_(range),
      bend_(range.log_size, {kBendLength}),
      misfit_(
          SmoothLine(range.log_size, {kMisfitSize}),
          SmoothLine({range.log_depth.low - kBeyondDepths, range.log_depth.high + kBeyondDepths},
                     kMisfitDepth),
          SmoothLine(range.length, {kMisfitLength})) {
  fixed_ = range.lengths > 2 ? 7 : range.lengths > 1 ? 6 : 3;
}

Eigen::RowVectorXd SurfaceColumns::level(const SurfacePlace& place) const {
  const double half = std::max(1e-3, (range_.log_size.high - range_.log_size.low) / 2);
  const double t = (place.x - range_.log_size.low) / half - 1;
  Eigen::RowVectorXd values(fixed_ + bends());
  values.head(3) << 1, t, t * t;
  // What longer training gains bends with size too; without that, misfit would have to absorb it.
  if (fixed_ > 3) values.segment(3, 3) << place.z, place.z * t, place.z * t * t;
  if (fixed_ > 6) values[6] = place.z * place.z;
  values.tail(bends()) = bend_.at(place.x).transpose();
  return values;
}

Eigen::RowVectorXd SurfaceColumns::at(const SurfacePlace& place) const {
  Eigen::RowVectorXd values(size());
  values << level(place), misfit(place);
  return values;
}

Eigen::VectorXd SurfaceColumns::deviations(const SurfaceScales& scales) const {
  Eigen::VectorXd values = Eigen::VectorXd::Ones(size());
  values.segment(fixed_, bends()).setConstant(std::exp(scales.log_bend));
  values.tail(misfits()).setConstant(scales.misfit_deviation());
  return values;
}

SurfaceLikelihood::SurfaceLikelihood(SurfaceData data)
    : data_(std::move(data)), columns_(range_of(data_)) {
  at_rows_.resize(rows(), columns_.size());
  means_.resize(rows());
  for (Eigen::Index i = 0; i < rows(); ++i) {
    const SurfaceRow& row = data_.rows[static_cast<std::size_t>(i)];
    at_rows_.row(i) = columns_.at(row.place);
    means_[i] = row.mean;
  }
}

Eigen::MatrixXd SurfaceLikelihood::noise_covariance(const ShapeBlock& block, const RepeatUnit& unit,
                                                    const SurfaceScales& scales) const {
  Eigen::VectorXd deviations(unit.lengths);
  for (Eigen::Index i = 0; i < unit.lengths; ++i) {
    const SurfacePlace& place = data_.rows[static_cast<std::size_t>(unit.first + i)].place;
    deviations[i] = scales.noise(block.depth, place.x - data_.centre(), place.z);
  }
  const double shared = data_.length_rule.differs ? scales.length_correlation() : 0;
  Eigen::MatrixXd covariance = shared * deviations * deviations.transpose();
  covariance.diagonal() += (1 - shared) * deviations.cwiseAbs2();
  return covariance;
}

Eigen::MatrixXd SurfaceLikelihood::block_covariance(const ShapeBlock& block,
                                                    const SurfaceScales& scales) const {
  Eigen::MatrixXd covariance =
      Eigen::MatrixXd::Constant(block.rows, block.rows, std::pow(scales.shape_deviation(), 2));
  for (const RepeatUnit& unit : block.units) {
    const Eigen::Index start = unit.first - block.first;
    covariance.block(start, start, unit.lengths, unit.lengths) +=
        noise_covariance(block, unit, scales) / unit.repeats;
  }
  return covariance;
}

double SurfaceLikelihood::repeat_likelihood(const SurfaceScales& scales) const {
  double sum = 0;
  for (const ShapeBlock& block : data_.shapes) {
    for (const RepeatUnit& unit : block.units) {
      if (unit.repeats < 2) continue;
      const Eigen::LLT<Eigen::MatrixXd> noise(noise_covariance(block, unit, scales));
      const double log_determinant = 2 * noise.matrixLLT().diagonal().array().log().sum();
      sum -= (unit.repeats - 1) * log_determinant + noise.solve(unit.scatter).trace();
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
  prepared.deviations = columns_.deviations(scales);
  prepared.design = at_rows_ * prepared.deviations.asDiagonal();
  whiten(prepared, prepared.design);
  Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(coefficients(), coefficients());
  normal.selfadjointView<Eigen::Lower>().rankUpdate(prepared.design.transpose());
  normal.diagonal().head(columns_.fixed()).array() += kFlat;
  normal.diagonal().tail(coefficients() - columns_.fixed()).array() += 1;
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
