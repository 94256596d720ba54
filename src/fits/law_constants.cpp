#include "fits/law_constants.h"

#include <cmath>

#include "core/counts.h"
#include "fits/statistics.h"
#include "fits/surface_draws.h"

namespace fathom::fits {
namespace {

/// What `read(point)` gives over the draws of the exponential form.
template <class Read>
LawConstants over_draws(const FormPosterior& form, Read&& read) {
  WeightedSample a;
  WeightedSample b;
  for (const WeightedDraw& draw : form.draws) {
    const DepthLaw::Constants constants = read(draw.point);
    a.add(constants.a, draw.weight);
    b.add(constants.b, draw.weight);
  }
  double mean_a = 0;
  double mean_b = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    mean_a += a.values[i].second * a.values[i].first;
    mean_b += a.values[i].second * b.values[i].first;
  }
  double aa = 0;
  double bb = 0;
  double ab = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double weight = a.values[i].second;
    const double off_a = a.values[i].first - mean_a;
    const double off_b = b.values[i].first - mean_b;
    aa += weight * off_a * off_a;
    bb += weight * off_b * off_b;
    ab += weight * off_a * off_b;
  }
  a.sort();
  b.sort();
  LawConstants law;
  law.a = a.quantile(0.5);
  law.b = b.quantile(0.5);
  law.a_interval = a.interval();
  law.b_interval = b.interval();
  law.a_error = (law.a_interval.high - law.a_interval.low) / (2 * kNormal95);
  law.b_error = (law.b_interval.high - law.b_interval.low) / (2 * kNormal95);
  law.correlation = aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
  return law;
}

}  // namespace

LawConstants best_depth_constants(const SurfacePosterior& posterior) {
  const FormPosterior& form = posterior.form(LawForm::exponential);
  const double coefficient = posterior.data().block_coefficient;
  return over_draws(form, [&](const Eigen::VectorXd& point) {
    return form.surface.law().constants(point.data(), coefficient);
  });
}

std::optional<TransitionReading> transition_constants(const SurfacePosterior& posterior) {
  const SurfaceData& data = posterior.data();
  const FormPosterior& form = posterior.form(LawForm::exponential);
  TransitionReading reading;
  for (std::size_t i = 1; i < data.depths.size(); ++i) {
    const double x = form.surface.crossing(form.best().parameters, as_double(data.depths[i - 1]),
                                           as_double(data.depths[i]));
    if (x < data.log_size.low || x > data.log_size.high) continue;
    reading.pairs.emplace_back(data.depths[i - 1], data.depths[i]);
  }
  if (reading.pairs.size() < 2) return std::nullopt;
  reading.law = over_draws(form, [&](const Eigen::VectorXd& point) {
    double count = 0, m = 0, y = 0, mm = 0, my = 0;
    for (const auto& [shallow, deep] : reading.pairs) {
      const double layers = as_double(deep);
      const double x = form.surface.crossing(point, as_double(shallow), layers);
      const double log_width = (x - std::log(data.block_coefficient * layers)) / 2;
      count += 1;
      m += layers;
      y += log_width;
      mm += layers * layers;
      my += layers * log_width;
    }
    const double slope = (my - m * y / count) / (mm - m * m / count);
    return DepthLaw::Constants{(y - slope * m) / count, slope};
  });
  return reading;
}

}  // namespace fathom::fits
