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
constexpr double kBySizeWidth = 0.25;   // noise as N^-0.25 is one deviation away
constexpr double kByLengthWidth = 0.7;  // as T^-0.7
constexpr double kLengthLogitWidth = 1.5;

/// The place of each scale among the fitted ones.
struct ScalePlaces {
  Eigen::Index noise = 0;
  Eigen::Index depths = 1;
  Eigen::Index shape = 0;
  Eigen::Index bend = 0;
  Eigen::Index by_size = 0;
  Eigen::Index by_length = 0;  // these two only where lengths differ
  Eigen::Index logit = 0;
  Eigen::Index count = 0;

  explicit ScalePlaces(const SurfaceData& data) {
    shape = depths + static_cast<Eigen::Index>(data.depths.size());
    bend = shape + 1;
    by_size = bend + 1;
    by_length = by_size + 1;
    logit = by_length + 1;
    count = data.length_rule.differs ? logit + 1 : by_length;
  }
};

Eigen::VectorXd pack(const SurfaceLikelihood& likelihood, const SurfaceScales& scales) {
  const ScalePlaces places(likelihood.data());
  Eigen::VectorXd packed(places.count);
  packed[places.noise] = scales.log_noise;
  packed.segment(places.depths, scales.log_depths.size()) = scales.log_depths;
  packed[places.shape] = scales.log_shape;
  packed[places.bend] = scales.log_bend;
  packed[places.by_size] = scales.noise_by_size;
  if (!likelihood.data().length_rule.differs) return packed;
  packed[places.by_length] = scales.noise_by_length;
  packed[places.logit] = scales.length_logit;
  return packed;
}

SurfaceScales unpack(const SurfaceLikelihood& likelihood, const Eigen::VectorXd& packed,
                     double log_misfit) {
  const ScalePlaces places(likelihood.data());
  SurfaceScales scales;
  scales.log_noise = packed[places.noise];
  scales.log_depths = packed.segment(places.depths, places.shape - places.depths);
  scales.log_shape = packed[places.shape];
  scales.log_bend = packed[places.bend];
  scales.noise_by_size = packed[places.by_size];
  scales.log_misfit = log_misfit;
  if (!likelihood.data().length_rule.differs) return scales;
  scales.noise_by_length = packed[places.by_length];
  scales.length_logit = packed[places.logit];
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
  const ScalePlaces places(likelihood.data());
  add_normal(scales.log_noise, kLogNoise, kLogNoiseWidth, objective, gradient[places.noise]);
  for (Eigen::Index k = 0; k < scales.log_depths.size(); ++k) {
    const double t = scales.log_depths[k] / kDepthWidth;
    const double bulk = 1 + t * t / kDepthDegrees;
    objective -= (kDepthDegrees + 1) / 2 * std::log(bulk);
    gradient[places.depths + k] -= (kDepthDegrees + 1) / kDepthDegrees * t / kDepthWidth / bulk;
  }
  add_normal(scales.log_shape, kLogShape, kLogShapeWidth, objective, gradient[places.shape]);
  add_normal(scales.log_bend, kLogBend, kLogBendWidth, objective, gradient[places.bend]);
  add_normal(scales.noise_by_size, 0, kBySizeWidth, objective, gradient[places.by_size]);
  if (!likelihood.data().length_rule.differs) return;
  add_normal(scales.noise_by_length, 0, kByLengthWidth, objective, gradient[places.by_length]);
  add_normal(scales.length_logit, 0, kLengthLogitWidth, objective, gradient[places.logit]);
}

/// Adds the slopes with respect to everything that one trajectory's noise covariance S depends on;
/// `pull` is minus twice the derivative of the objective with respect to S.
void add_noise_slopes(const SurfaceData& data, const ShapeBlock& block, const RepeatUnit& unit,
                      const SurfaceScales& scales, const Eigen::MatrixXd& covariance,
                      const Eigen::MatrixXd& pull, Eigen::VectorXd& gradient) {
  const ScalePlaces places(data);
  const Eigen::MatrixXd each = pull.cwiseProduct(covariance);
  gradient[places.noise] -= each.sum();
  gradient[places.depths + static_cast<Eigen::Index>(block.depth)] -= each.sum();
  for (Eigen::Index i = 0; i < unit.lengths; ++i) {
    const SurfacePlace& place = data.rows[static_cast<std::size_t>(unit.first + i)].place;
    gradient[places.by_size] -= each.row(i).sum() * (place.x - data.centre());
    if (data.length_rule.differs) gradient[places.by_length] -= each.row(i).sum() * place.z;
  }
  if (!data.length_rule.differs) return;
  // Off the diagonal S is rho times the deviations, and d rho / d logit = rho (1 - rho).
  gradient[places.logit] -= (each.sum() - each.trace()) * (1 - scales.length_correlation()) / 2;
}

/// Adds the slopes with respect to the parameters of R, the covariance of the row means, and of the
/// repeats' scatter.
void add_block_slopes(const SurfaceLikelihood& likelihood, const SurfaceLikelihood::Prepared& at,
                      const Eigen::MatrixXd& projection, const Eigen::VectorXd& residual,
                      Eigen::VectorXd& gradient) {
  const SurfaceData& data = likelihood.data();
  const ScalePlaces places(data);
  const double shape = std::pow(at.scales.shape_deviation(), 2);
  for (std::size_t s = 0; s < data.shapes.size(); ++s) {
    const ShapeBlock& block = data.shapes[s];
    const auto part = projection.middleCols(block.first, block.rows);
    const Eigen::VectorXd off = residual.segment(block.first, block.rows);
    // C^-T (I - E) C^-1
    Eigen::MatrixXd pull = Eigen::MatrixXd::Identity(block.rows, block.rows);
    pull -= off * off.transpose() + part.transpose() * part;
    const auto factor = at.factors[s].triangularView<Eigen::Lower>();
    factor.transpose().solveInPlace(pull);
    pull.transposeInPlace();
    factor.transpose().solveInPlace(pull);
    gradient[places.noise] -= shape * pull.sum();
    gradient[places.shape] -= shape * pull.sum();
    for (const RepeatUnit& unit : block.units) {
      const Eigen::Index start = unit.first - block.first;
      const Eigen::MatrixXd noise = likelihood.noise_covariance(block, unit, at.scales);
      Eigen::MatrixXd own = pull.block(start, start, unit.lengths, unit.lengths) / unit.repeats;
      if (unit.repeats > 1) {
        const Eigen::MatrixXd inverse =
            noise.llt().solve(Eigen::MatrixXd::Identity(unit.lengths, unit.lengths));
        own += (unit.repeats - 1) * inverse - inverse * unit.scatter * inverse;
      }
      add_noise_slopes(data, block, unit, at.scales, noise, own, gradient);
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

  const ScalePlaces places(likelihood.data());
  gradient.setZero(places.count);
  add_block_slopes(likelihood, at, projection, residual, gradient);
  const SurfaceColumns& columns = likelihood.columns();
  // A group of standard normal coefficients scaled by t: d ln p / d ln t = sum (E c^2 - 1).
  const Eigen::MatrixXd inverse = factor.solve(Eigen::MatrixXd::Identity(all, all));
  const Eigen::VectorXd excess = solution.array().square() + inverse.diagonal().array() - 1;
  gradient[places.bend] += excess.segment(columns.fixed(), columns.bends()).sum();
  gradient[places.noise] += excess.segment(count - columns.misfits(), columns.misfits()).sum();
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
  Eigen::VectorXd unused = Eigen::VectorXd::Zero(ScalePlaces(likelihood.data()).count);
  add_priors(likelihood, scales, value, unused);
  return value;
}

}  // namespace fathom::fits
