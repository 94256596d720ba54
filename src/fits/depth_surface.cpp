#include "fits/depth_surface.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fathom::fits {
namespace {

/// h(v) with its derivatives with respect to v, p - q and ln(pq).
struct Bowl {
  double value = 0;
  double by_v = 0;
  double by_skew = 0;
  double by_steepness = 0;
};

Bowl bowl(double v, double p, double q) {
  const double deep = std::expm1(p * v) / p;
  const double shallow = std::expm1(-q * v) / q;
  const double value = (deep + shallow) / (p + q);
  const double rise = std::exp(p * v);
  const double fall = std::exp(-q * v);
  const double by_log_p = (v * rise - deep - p * value) / (p + q);
  const double by_log_q = (-v * fall - shallow - q * value) / (p + q);
  // dp = p ds / (p + q) + pq dln(pq) / (p + q), dq = -q ds / (p + q) + the same.
  return {value, (rise - fall) / (p + q), (by_log_p - by_log_q) / (p + q),
          (q * by_log_p + p * by_log_q) / (p + q)};
}

}  // namespace

double DepthSurface::log_curvature(const Eigen::VectorXd& parameters, double x, double z) const {
  const int k = curvature_place();
  const double value = parameters[k] + parameters[k + 1] * (x - law_.centre());
  return lengths_ ? value + parameters[length_place() + 1] * z : value;
}

DepthSurface::LawThen DepthSurface::law_then(const Eigen::VectorXd& parameters, double x,
                                             double z) const {
  LawThen then;
  std::copy_n(parameters.data(), law_.size(), then.parameters.begin());
  then.x = x;
  if (!lengths_ || z == 0) return then;
  if (law_.size() > 1) then.parameters[1] += parameters[length_place() + 2] * z;
  then.x -= parameters[length_place()] * z;
  return then;
}

DepthSurface::Sides DepthSurface::sides(const Eigen::VectorXd& parameters) const {
  const double half = parameters[bowl_place()] / 2;
  const double product = std::exp(parameters[bowl_place() + 1]);
  const double larger = std::fabs(half) + std::sqrt(half * half + product);
  return half > 0 ? Sides{larger, product / larger} : Sides{product / larger, larger};
}

double DepthSurface::Section::at(double u) const {
  const double v = u - best_;
  return scale_ * (std::expm1(p_ * v) / p_ + std::expm1(-q_ * v) / q_);
}

Eigen::ArrayXd DepthSurface::Section::at(const Eigen::ArrayXd& u) const {
  const Eigen::ArrayXd v = u - best_;
  return scale_ * (((p_ * v).exp() - 1) / p_ + ((-q_ * v).exp() - 1) / q_);
}

DepthSurface::Section DepthSurface::section(const Eigen::VectorXd& parameters, double x,
                                            double z) const {
  return section(parameters, sides(parameters), x, z);
}

DepthSurface::Section DepthSurface::section(const Eigen::VectorXd& parameters, const Sides& sides,
                                            double x, double z) const {
  const auto [p, q] = sides;
  Section section;
  section.best_ = best_log_depth(parameters, x, z);
  section.scale_ = curvature(parameters, x, z) / (p + q);
  section.p_ = p;
  section.q_ = q;
  return section;
}

double DepthSurface::penalty(const Eigen::VectorXd& parameters, const SurfacePlace& place) const {
  return section(parameters, place.x, place.z).at(place.u);
}

double DepthSurface::penalty(const Eigen::VectorXd& parameters, const SurfacePlace& place,
                             Eigen::Ref<Eigen::RowVectorXd> gradient) const {
  const int k = curvature_place();
  const LawThen then = law_then(parameters, place.x, place.z);
  const DepthLaw::Place best = law_.at(then.parameters.data(), then.x);
  const double curvature = std::exp(log_curvature(parameters, place.x, place.z));
  const auto [p, q] = sides(parameters);
  const Bowl h = bowl(place.u - best.log_depth, p, q);
  const double value = curvature * h.value;
  for (int i = 0; i < k; ++i) {
    gradient[i] = -curvature * h.by_v * best.gradient[static_cast<std::size_t>(i)];
  }
  gradient[k] = value;
  gradient[k + 1] = value * (place.x - law_.centre());
  gradient[k + 2] = curvature * h.by_skew;
  gradient[k + 3] = curvature * h.by_steepness;
  if (lengths_) {
    gradient[k + 4] = curvature * h.by_v * best.slope * place.z;
    gradient[k + 5] = value * place.z;
    gradient[k + 6] = k > 1 ? gradient[1] * place.z : 0;
  }
  return value;
}

double DepthSurface::best_log_depth(const Eigen::VectorXd& parameters, double x, double z) const {
  const LawThen then = law_then(parameters, x, z);
  return law_.log_depth(then.parameters.data(), then.x);
}

double DepthSurface::curvature(const Eigen::VectorXd& parameters, double x, double z) const {
  return std::exp(log_curvature(parameters, x, z));
}

double DepthSurface::crossing(const Eigen::VectorXd& parameters, double shallow,
                              double deep) const {
  const auto [p, q] = sides(parameters);
  return law_.log_size(parameters.data(), crossing_log_depth(shallow, deep, p, q));
}

DepthSurface::Prior DepthSurface::prior(double mean_log_depth) const {
  // Published studies: slopes 0.2 to 0.8 between 1 M and 1 B (arXiv 2006.12467, 2502.06857,
  // 2203.15556); two per cent of loss for a factor of four in depth is a curvature of 0.02.
  Prior prior{Eigen::VectorXd::Zero(size()), Eigen::VectorXd::Ones(size())};
  const int k = curvature_place();
  prior.mean[0] = mean_log_depth;
  prior.deviation[0] = 1.5;
  if (k > 1) {
    prior.mean[1] = std::log(0.4);
    prior.deviation[1] = 0.8;
  }
  if (k > 2) prior.deviation[2] = 0.3;
  prior.mean.segment(k, 4) << std::log(0.02), 0, -0.25, std::log(0.2);
  prior.deviation.segment(k, 4) << 1.2, 0.3, 0.6, 1;
  if (lengths_) prior.deviation.segment(length_place(), 3) << 1, 0.3, 0.1;
  return prior;
}

double crossing_log_depth(double shallow, double deep, double p, double q) {
  // Relative to the geometric mean, with half the log of their ratio: m^p - l^p is 2 sinh(p half)
  // times the mean to the power p.
  const double half = std::log(deep / shallow) / 2;
  const double middle = std::log(deep * shallow) / 2;
  return middle + std::log(q * std::sinh(p * half) / (p * std::sinh(q * half))) / (p + q);
}

}  // namespace fathom::fits
