#include "fits/exponential_fit.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "fits/statistics.h"
#include "laws/levine.h"

namespace fathom::fits {
namespace {

struct Places {
  std::vector<CrossingPlace> crossings;
  Eigen::MatrixXd design;      // 1, L
  Eigen::VectorXd log_widths;  // y
  Eigen::MatrixXd covariance;  // of y
};

/// ln d of the depth that carries the transition, at equal N: d falls with the root of the depth.
double carried_log_width(const CurveFamily& curves, const CrossingPlace& place, double layers,
                         double log_size) {
  const auto deep = as_double(curves.depths()[place.deep].layers);
  return std::log(curves.width(place.deep, log_size)) + 0.5 * std::log(deep / layers);
}

double carrying_depth(const CurveFamily& curves, const CrossingPlace& place, Reading reading) {
  const auto shallow = as_double(curves.depths()[place.shallow].layers);
  const auto deep = as_double(curves.depths()[place.deep].layers);
  return reading == Reading::deeper ? deep : (shallow + deep) / 2;
}

Places collect(const CurveFamily& curves, const std::vector<Transition>& transitions,
               Reading reading) {
  Places places;
  for (const Transition& transition : transitions) {
    if (!transition.adjacent || transition.status != TransitionStatus::crossing) continue;
    CrossingPlace place;
    while (curves.depths()[place.shallow].layers != transition.shallow) ++place.shallow;
    place.deep = place.shallow + 1;
    place.log_size = std::log(*transition.params);
    places.crossings.push_back(place);
  }
  const auto count = as_signed(places.crossings.size());
  places.design.resize(count, 2);
  places.log_widths.resize(count);
  places.covariance.resize(count, count);
  std::vector<Eigen::VectorXd> rows;  // d(ln d) / d(coefficients)
  for (Eigen::Index i = 0; i < count; ++i) {
    const CrossingPlace& place = places.crossings[i];
    const double layers = carrying_depth(curves, place, reading);
    places.design.row(i) << 1, layers;
    places.log_widths[i] = carried_log_width(curves, place, layers, place.log_size);
    const double slope =
        curves.gain_slope_row(place.shallow, place.deep, place.log_size).dot(curves.coefficients());
    rows.push_back(curves.gain_row(place.shallow, place.deep, place.log_size) *
                   (curves.depths()[place.deep].width_slope / slope));
  }
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = 0; j < count; ++j) {
      places.covariance(i, j) = curves.covariance(rows[i], rows[j]);
    }
  }
  return places;
}

/// The wider of the normal interval and the bootstrap's, each side separately.
void set_intervals(const CurveFamily& curves, const Places& places, Reading reading,
                   const Eigen::MatrixXd& solver,
                   const std::vector<CurveFamily::Replicate>& replicates, double scale,
                   ExponentialFit& fit) {
  std::vector<double> a;
  std::vector<double> b;
  Eigen::VectorXd moved = places.log_widths;
  for (const CurveFamily::Replicate& replicate : replicates) {
    bool all = true;
    for (std::size_t i = 0; i < places.crossings.size() && all; ++i) {
      const CrossingPlace& place = places.crossings[i];
      const auto x = shifted_crossing(curves, place, replicate.coefficients);
      all = x.has_value();
      if (all) {
        moved[as_signed(i)] =
            carried_log_width(curves, place, carrying_depth(curves, place, reading), *x);
      }
    }
    if (!all) continue;
    const Eigen::Vector2d line = solver * moved;
    a.push_back(fit.a + scale * (line[0] - fit.a));
    b.push_back(fit.b + scale * (line[1] - fit.b));
  }
  const double student = student_quantile(0.975, curves.degrees_of_freedom());
  fit.a_interval = {fit.a - student * fit.a_error, fit.a + student * fit.a_error};
  fit.b_interval = {fit.b - student * fit.b_error, fit.b + student * fit.b_error};
  if (a.size() * 2 < replicates.size() || a.empty()) return;
  fit.a_interval.low = std::min(fit.a_interval.low, quantile(a, 0.025));
  fit.a_interval.high = std::max(fit.a_interval.high, quantile(a, 0.975));
  fit.b_interval.low = std::min(fit.b_interval.low, quantile(b, 0.025));
  fit.b_interval.high = std::max(fit.b_interval.high, quantile(b, 0.975));
}

void compare_with_published(const Places& places, const Eigen::MatrixXd& weight,
                            ExponentialFit& fit) {
  const laws::LevineFit published;
  fit.a_score = (fit.a - published.a) / std::hypot(fit.a_error, published.a_error);
  fit.b_score = (fit.b - published.b) / std::hypot(fit.b_error, published.b_error);
  const Eigen::VectorXd off =
      places.log_widths - places.design * Eigen::Vector2d(published.a, published.b);
  fit.published_chi2 = off.dot(weight * off);
}

}  // namespace

double ExponentialFit::width_at(double layers) const {
  return std::exp(a + b * layers);
}

std::optional<ExponentialFit> fit_exponential(const CurveFamily& curves,
                                              const std::vector<Transition>& transitions,
                                              const std::vector<CurveFamily::Replicate>& replicates,
                                              Reading reading, std::string& reason) {
  const Places places = collect(curves, transitions, reading);
  const Eigen::Index count = places.log_widths.size();
  if (count < 2) {
    reason = fmt::format("{} of the neighbouring depths cross inside the grid; a line needs two",
                         count == 0 ? "none" : "only one pair");
    return std::nullopt;
  }
  const Eigen::MatrixXd weight =
      places.covariance.ldlt().solve(Eigen::MatrixXd::Identity(count, count));
  const Eigen::Matrix2d normal = places.design.transpose() * weight * places.design;
  Eigen::Matrix2d covariance = normal.inverse();
  const Eigen::MatrixXd solver = covariance * places.design.transpose() * weight;
  const Eigen::Vector2d line = solver * places.log_widths;
  const Eigen::VectorXd residual = places.log_widths - places.design * line;

  ExponentialFit fit;
  fit.reading = reading;
  fit.a = line[0];
  fit.b = line[1];
  fit.chi2 = residual.dot(weight * residual);
  fit.degrees_of_freedom = static_cast<int>(count) - 2;
  double scale = 1;
  if (fit.degrees_of_freedom > 0)
    scale = std::max(1.0, std::sqrt(fit.chi2 / fit.degrees_of_freedom));
  covariance *= scale * scale;
  fit.a_error = std::sqrt(covariance(0, 0));
  fit.b_error = std::sqrt(covariance(1, 1));
  fit.correlation = covariance(0, 1) / (fit.a_error * fit.b_error);
  for (Eigen::Index i = 0; i < count; ++i) {
    fit.points.push_back(
        {places.design(i, 1), std::exp(places.log_widths[i]), std::sqrt(places.covariance(i, i))});
  }
  set_intervals(curves, places, reading, solver, replicates, scale, fit);
  compare_with_published(places, weight, fit);
  return fit;
}

}  // namespace fathom::fits
