#include "fits/surface_scales.h"

#include <cmath>

#include "fits/minimise.h"

namespace fathom::fits {
namespace {

// Priors of the scales: what runs of small language models show, wide enough to be overruled.
constexpr double kLogNoise = -6;  // 0.25 % of the loss
constexpr double kLogNoiseWidth = 1.5;
constexpr double kDepthWidth = 0.3;  // of ln(sigma_L / sigma), Student with 3 degrees of freedom
constexpr double kDepthDegrees = 3;
const double kLogShape = std::log(0.2);  // of the noise
constexpr double kLogShapeWidth = 0.9;
const double kLogBend = std::log(0.005);
constexpr double kLogBendWidth = 1;
constexpr double kLengthLogitWidth = 1.5;

Eigen::Index packed_size(const SurfaceLikelihood& likelihood) {
  const auto depths = static_cast<Eigen::Index>(likelihood.data().depths.size());
  return 3 + depths + (likelihood.data().length_rule.differs ? 1 : 0);
}

Eigen::VectorXd pack(const SurfaceLikelihood& likelihood, const SurfaceScales& scales) {
  const Eigen::Index depths = scales.log_depths.size();
  Eigen::VectorXd packed(packed_size(likelihood));
  packed[0] = scales.log_noise;
  packed.segment(1, depths) = scales.log_depths;
  packed[depths + 1] = scales.log_shape;
  packed[depths + 2] = scales.log_bend;
  if (likelihood.data().length_rule.differs) packed[depths + 3] = scales.length_logit;
  return packed;
}

SurfaceScales unpack(const SurfaceLikelihood& likelihood, const Eigen::VectorXd& packed,
                     double log_misfit) {
  const auto depths = static_cast<Eigen::Index>(likelihood.data().depths.size());
  SurfaceScales scales;
  scales.log_noise = packed[0];
  scales.log_depths = packed.segment(1, depths);
  scales.log_shape = packed[depths + 1];
  scales.log_bend = packed[depths + 2];
  scales.log_misfit = log_misfit;
  if (likelihood.data().length_rule.differs) scales.length_logit = packed[depths + 3];
  return scales;
}

/// Adds a normal prior's value and slope.
void add_normal(double value, double mean, double width, double& objective, double& slope) {
  const double t = (value - mean) / width;
  objective -= t * t / 2;
  slope -= t / width;
}

void add_priors(const SurfaceLikelihood& likelihood, const SurfaceScales& scales, double& objective,
                Eigen::VectorXd& gradient) {
  const Eigen::Index depths = scales.log_depths.size();
  add_normal(scales.log_noise, kLogNoise, kLogNoiseWidth, objective, gradient[0]);
  for (Eigen::Index k = 0; k < depths; ++k) {
    const double t = scales.log_depths[k] / kDepthWidth;
    const double bulk = 1 + t * t / kDepthDegrees;
    objective -= (kDepthDegrees + 1) / 2 * std::log(bulk);
    gradient[1 + k] -= (kDepthDegrees + 1) / kDepthDegrees * t / kDepthWidth / bulk;
  }
  add_normal(scales.log_shape, kLogShape, kLogShapeWidth, objective, gradient[depths + 1]);
  add_normal(scales.log_bend, kLogBend, kLogBendWidth, objective, gradient[depths + 2]);
  if (likelihood.data().length_rule.differs) {
    add_normal(scales.length_logit, 0, kLengthLogitWidth, objective, gradient[depths + 3]);
  }
}

/// Adds the slope of the repeats' likelihood by ln sigma, ln sigma_L and the length logit.
void add_repeat_slopes(const SurfaceLikelihood& likelihood, const SurfaceScales& scales,
                       Eigen::VectorXd& gradient) {
  const bool lengths_differ = likelihood.data().length_rule.differs;
  const double shared = lengths_differ ? scales.length_correlation() : 0;
  for (const ShapeBlock& block : likelihood.data().shapes) {
    const double noise = std::pow(scales.noise(block.depth), 2);
    for (const RepeatUnit& unit : block.units) {
      if (unit.repeats < 2) continue;
      const auto lengths = static_cast<double>(unit.lengths);
      const double average = 1 + (lengths - 1) * shared;
      const double rest = 1 - shared;
      const double of_average = unit.scatter_of_averages / (noise * average);
      const double of_rest = unit.scatter_of_rest / (noise * rest);
      const double by_noise = of_average + of_rest - (unit.repeats - 1) * lengths;
      gradient[0] += by_noise;
      gradient[1 + static_cast<Eigen::Index>(block.depth)] += by_noise;
      if (!lengths_differ) continue;
      const double by_shared = ((lengths - 1) / average * (of_average - (unit.repeats - 1)) -
                                (of_rest - (unit.repeats - 1) * (lengths - 1)) / rest) /
                               2;
      gradient[gradient.size() - 1] += by_shared * shared * (1 - shared);
    }
  }
}

/// Adds the slopes by the parameters of R. `gap` = I - E of the rows.
void add_block_slopes(const SurfaceLikelihood& likelihood, const SurfaceLikelihood::Prepared& at,
                      const Eigen::MatrixXd& projection, const Eigen::VectorXd& residual,
                      Eigen::VectorXd& gradient) {
  const SurfaceData& data = likelihood.data();
  const Eigen::Index depths = at.scales.log_depths.size();
  const double shape = std::pow(at.scales.shape_deviation(), 2);
  const double shared = data.length_rule.differs ? at.scales.length_correlation() : 0;
  for (std::size_t s = 0; s < data.shapes.size(); ++s) {
    const ShapeBlock& block = data.shapes[s];
    const auto part = projection.middleCols(block.first, block.rows);
    const Eigen::VectorXd off = residual.segment(block.first, block.rows);
    Eigen::MatrixXd gap = Eigen::MatrixXd::Identity(block.rows, block.rows);
    gap -= off * off.transpose() + part.transpose() * part;
    gradient[0] -= gap.trace();
    // R by ln(sigma_L) is twice its noise part, by ln(shape) twice the shape part.
    Eigen::MatrixXd by_shape = Eigen::MatrixXd::Constant(block.rows, block.rows, shape);
    Eigen::MatrixXd by_length = Eigen::MatrixXd::Zero(block.rows, block.rows);
    if (data.length_rule.differs) {
      const double noise = std::pow(at.scales.noise(block.depth), 2);
      for (const RepeatUnit& unit : block.units) {
        const Eigen::Index start = unit.first - block.first;
        auto piece = by_length.block(start, start, unit.lengths, unit.lengths);
        piece.setConstant(noise / unit.repeats);
        piece.diagonal().setZero();
      }
    }
    const auto whitened = [&](Eigen::MatrixXd m) {
      const auto factor = at.factors[s].triangularView<Eigen::Lower>();
      factor.solveInPlace(m);
      m.transposeInPlace();
      factor.solveInPlace(m);
      return m;
    };
    const double shape_part = whitened(by_shape).cwiseProduct(gap).sum();
    gradient[1 + static_cast<Eigen::Index>(block.depth)] -= gap.trace() - shape_part;
    gradient[depths + 1] -= shape_part;
    if (data.length_rule.differs) {
      gradient[depths + 3] -=
          whitened(by_length).cwiseProduct(gap).sum() * shared * (1 - shared) / 2;
    }
  }
}

}  // namespace

LinearSurface linearise(const SurfaceLikelihood& likelihood, const DepthSurface& surface,
                        const Eigen::VectorXd& parameters, const DepthSurface::Prior& prior) {
  LinearSurface linear;
  const Eigen::VectorXd penalties = likelihood.penalties(surface, parameters, linear.jacobian);
  linear.response = likelihood.means() - penalties + linear.jacobian * (parameters - prior.mean);
  linear.precision = prior.deviation.array().square().inverse();
  return linear;
}

SurfaceScales first_scales(const SurfaceLikelihood& likelihood, double log_misfit) {
  SurfaceScales scales;
  scales.log_noise = kLogNoise;
  scales.log_depths =
      Eigen::VectorXd::Zero(static_cast<Eigen::Index>(likelihood.data().depths.size()));
  scales.log_shape = kLogShape;
  scales.log_bend = kLogBend;
  scales.log_misfit = log_misfit;
  return scales;
}

double scales_objective(const SurfaceLikelihood& likelihood, const LinearSurface& surface,
                        const SurfaceScales& scales, Eigen::VectorXd& gradient) {
  const SurfaceLikelihood::Prepared at = likelihood.prepare(scales);
  const Eigen::Index count = likelihood.coefficients();
  const Eigen::Index all = count + surface.jacobian.cols();
  Eigen::MatrixXd design(likelihood.rows(), all);
  design.leftCols(count) = at.design;
  Eigen::MatrixXd own(likelihood.rows(), surface.jacobian.cols() + 1);
  own << surface.jacobian, surface.response;
  likelihood.whiten(at, own);
  design.rightCols(surface.jacobian.cols()) = own.leftCols(surface.jacobian.cols());
  const Eigen::VectorXd response = own.rightCols(1);
  Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(all, all);
  normal.topLeftCorner(count, count) = at.normal.reconstructedMatrix();
  normal.bottomRows(surface.jacobian.cols()) =
      design.rightCols(surface.jacobian.cols()).transpose() * design;
  normal.diagonal().tail(surface.jacobian.cols()) += surface.precision;
  const Eigen::LLT<Eigen::MatrixXd> factor(normal);
  const Eigen::MatrixXd projection = factor.matrixL().solve(design.transpose());
  const Eigen::VectorXd projected = projection * response;
  const Eigen::VectorXd solution = factor.matrixU().solve(projected);
  const Eigen::VectorXd residual = response - design * solution;
  double log_determinants = 2 * factor.matrixLLT().diagonal().array().log().sum();
  for (const Eigen::MatrixXd& block : at.factors) {
    log_determinants += 2 * block.diagonal().array().log().sum();
  }
  double objective =
      at.repeats - (log_determinants + response.squaredNorm() - projected.squaredNorm()) / 2;

  gradient.setZero(packed_size(likelihood));
  add_block_slopes(likelihood, at, projection, residual, gradient);
  add_repeat_slopes(likelihood, scales, gradient);
  const SurfaceColumns& columns = likelihood.columns();
  // A group of standard normal coefficients scaled by t: d ln p / d ln t = sum (E c^2 - 1).
  const Eigen::MatrixXd inverse = factor.solve(Eigen::MatrixXd::Identity(all, all));
  const Eigen::VectorXd excess = solution.array().square() + inverse.diagonal().array() - 1;
  gradient[scales.log_depths.size() + 2] += excess.segment(columns.fixed(), columns.bends()).sum();
  gradient[0] += excess.segment(count - columns.misfits(), columns.misfits()).sum();
  add_priors(likelihood, scales, objective, gradient);
  return objective;
}

SurfaceScales fit_scales(const SurfaceLikelihood& likelihood, const LinearSurface& surface,
                         const SurfaceScales& start) {
  const auto function = [&](const Eigen::VectorXd& packed, Eigen::VectorXd& gradient) {
    const double value = scales_objective(likelihood, surface,
                                          unpack(likelihood, packed, start.log_misfit), gradient);
    gradient = -gradient;
    return -value;
  };
  const Minimum minimum = minimise_bfgs(function, pack(likelihood, start), 60, 1e-7);
  return unpack(likelihood, minimum.x, start.log_misfit);
}

double log_scales_prior(const SurfaceLikelihood& likelihood, const SurfaceScales& scales) {
  double value = 0;
  Eigen::VectorXd unused = Eigen::VectorXd::Zero(packed_size(likelihood));
  add_priors(likelihood, scales, value, unused);
  return value;
}

}  // namespace fathom::fits
