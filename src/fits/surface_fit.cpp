#include "fits/surface_fit.h"

#include <algorithm>
#include <cmath>

#include "fits/statistics.h"
#include "fits/surface_draws.h"
#include "fits/surface_lengths.h"

namespace fathom::fits {
namespace {

constexpr std::size_t kSurfaces = 1000;

void set_slope(const SurfacePosterior& posterior, SurfaceFit& fit) {
  WeightedSample slope;
  for (const WeightedDraw& draw : posterior.form(LawForm::power).draws) {
    slope.add(std::exp(draw.point[1]), draw.weight);
  }
  slope.sort();
  fit.slope = slope.quantile(0.5);
  fit.slope_interval = slope.interval();
}

/// The mean squared error of one rung's rows predicted from the others, about the rung's own level.
double heldout_square(const SurfacePosterior& posterior, const FormPosterior& form,
                      const std::vector<std::size_t>& rung) {
  const SurfaceData& data = posterior.data();
  std::vector<bool> kept(data.shapes.size(), true);
  for (std::size_t s = 0; s < data.shapes.size(); ++s) {
    for (const std::size_t row : rung) {
      const auto i = static_cast<Eigen::Index>(row) - data.shapes[s].first;
      if (i >= 0 && i < data.shapes[s].rows) kept[s] = false;
    }
  }
  const std::size_t k = form.best_misfit();
  const SurfaceLikelihood part(keep_shapes(data, kept));
  const auto prepared = part.prepare(posterior.misfits()[k].scales);
  const SurfaceMode mode = find_mode(part, prepared, form.surface, form.modes[k].parameters);
  Eigen::MatrixXd residual = part.means() - part.penalties(form.surface, mode.parameters);
  part.whiten(prepared, residual);
  const Eigen::VectorXd coefficients = prepared.normal.solve(prepared.design.transpose() * residual)
                                           .cwiseProduct(prepared.deviations);
  std::vector<double> errors;
  for (std::size_t s = 0; s < data.shapes.size(); ++s) {
    if (kept[s]) continue;
    for (Eigen::Index i = data.shapes[s].first; i < data.shapes[s].first + data.shapes[s].rows;
         ++i) {
      const SurfaceRow& row = data.rows[static_cast<std::size_t>(i)];
      errors.push_back(row.mean - form.surface.penalty(mode.parameters, row.place) -
                       part.columns().at(row.place).dot(coefficients));
    }
  }
  const double level = mean(errors);
  double sum = 0;
  for (const double error : errors) sum += (error - level) * (error - level);
  return sum / static_cast<double>(errors.size() - 1);
}

double heldout_error(const SurfacePosterior& posterior, const FormPosterior& form) {
  double sum = 0;
  int count = 0;
  for (const std::vector<std::size_t>& rung : posterior.data().rungs) {
    if (rung.size() < 2) continue;
    sum += heldout_square(posterior, form, rung);
    ++count;
  }
  return count > 0 ? std::sqrt(sum / count) : 0;
}

void compare_forms(const SurfacePosterior& posterior, SurfaceFit& fit) {
  double least = 1e300;
  // One misfit for all: that of the free form, which contains the others except for their own
  // curves.
  const std::size_t k = posterior.form(LawForm::free).best_misfit();
  for (const LawForm name : kLawForms) {
    const FormPosterior& form = posterior.form(name);
    SurfaceForm shown{name, 0, posterior.probability(name), form.log_evidence,
                      heldout_error(posterior, form)};
    shown.delta_aic = -2 * form.modes[k].log_likelihood + 2 * form.surface.law().size();
    least = std::min(least, shown.delta_aic);
    fit.forms.push_back(shown);
  }
  for (SurfaceForm& form : fit.forms) form.delta_aic -= least;
  fit.preferred = std::max_element(fit.forms.begin(), fit.forms.end(),
                                   [](const SurfaceForm& a, const SurfaceForm& b) {
                                     return a.probability < b.probability;
                                   })
                      ->form;
  fit.exponential_odds =
      std::exp(fit.form(LawForm::exponential).log_evidence - fit.form(LawForm::power).log_evidence);
}

void set_scales(const SurfacePosterior& posterior, SurfaceFit& fit) {
  const FormPosterior& form = posterior.form(fit.preferred);
  const SurfaceScales& scales = posterior.misfits()[form.best_misfit()].scales;
  fit.noise = std::exp(scales.log_noise);
  for (std::size_t d = 0; d < posterior.data().depths.size(); ++d) {
    fit.depth_noise.push_back({posterior.data().depths[d], scales.noise(d, 0, 0)});
  }
  for (std::size_t k = 1; k < form.modes.size(); ++k) {
    fit.misfit += form.modes[k].weight * posterior.misfits()[k].scales.misfit_deviation();
  }
  if (!posterior.data().length_rule.differs) return;
  WeightedSample move;
  for (const FormPosterior& any : posterior.forms()) {
    const double share = posterior.probability(any.surface.law().form());
    for (const WeightedDraw& draw : any.draws) {
      move.add(draw.point[any.surface.length_place()], share * draw.weight);
    }
  }
  move.sort();
  fit.length_move = LengthMove{move.quantile(0.5), move.interval()};
}

BestDepth read_best_depth(const SurfaceDraws& draws, const SurfaceData& data, double params) {
  const Interval range = depths_searched(data);
  const std::vector<double> found = draws.best_log_depths(std::log(params), range);
  WeightedSample sample;
  for (const double u : found) sample.add(u, 1.0 / static_cast<double>(found.size()));
  sample.sort();
  const Bounds bounds = bounds_within(sample.interval(), range);
  BestDepth best{params, std::exp(std::clamp(sample.quantile(0.5), range.low, range.high)), {}, {}};
  if (bounds.low) best.low = std::exp(*bounds.low);
  if (bounds.high) best.high = std::exp(*bounds.high);
  return best;
}

void set_crossings(const SurfacePosterior& posterior, const SurfaceDraws& draws, SurfaceFit& fit) {
  const SurfaceData& data = posterior.data();
  for (std::size_t s = 0; s < data.depths.size(); ++s) {
    for (std::size_t d = s + 1; d < data.depths.size(); ++d) {
      Transition t;
      t.shallow = data.depths[s];
      t.deep = data.depths[d];
      t.adjacent = d == s + 1;
      t.grid_low = std::exp(data.log_size.low);
      t.grid_high = std::exp(data.log_size.high);
      std::vector<double> found = draws.crossings(s, d);
      WeightedSample sample;
      for (const double x : found) sample.add(x, 1.0 / static_cast<double>(found.size()));
      sample.sort();
      const Interval interval = sample.interval();
      const Bounds bounds = bounds_within(interval, data.log_size);
      if (bounds.low) t.low = std::exp(*bounds.low);
      if (bounds.high) t.high = std::exp(*bounds.high);
      t.status = t.low && t.high ? TransitionStatus::crossing
                 : t.high        ? TransitionStatus::below_grid
                 : t.low         ? TransitionStatus::above_grid
                                 : TransitionStatus::unclear;
      if (t.status == TransitionStatus::crossing) {
        t.params = std::exp(sample.quantile(0.5));
        t.log_error = (interval.high - interval.low) / (2 * kNormal95);
        t.width = std::sqrt(*t.params / (fit.block_coefficient * static_cast<double>(t.deep)));
      }
      fit.crossings.push_back(std::move(t));
    }
  }
}

}  // namespace

Interval depths_searched(const SurfaceData& data) {
  return {data.log_depth.low - kBeyondDepths, data.log_depth.high + kBeyondDepths};
}

std::vector<double> shown_sizes(const SurfaceData& data) {
  const double low = std::exp(data.log_size.low);
  const double high = std::exp(data.log_size.high);
  std::vector<double> sizes{low};
  const auto digits = [](double size) { return static_cast<int>(std::floor(std::log10(size))); };
  for (int power = digits(low); power <= digits(high); ++power) {
    for (const double times : {1.0, 2.0, 5.0}) {
      const double size = times * std::pow(10, power);
      // Not so near to an end that it says the same twice.
      if (size > 1.2 * low && size < high / 1.2) sizes.push_back(size);
    }
  }
  sizes.push_back(high);
  return sizes;
}

BestDepth best_depth_at(const SurfacePosterior& posterior, double params) {
  return read_best_depth(SurfaceDraws(posterior, kSurfaces, 1), posterior.data(), params);
}

SurfaceFit summarise_surface(const SurfacePosterior& posterior) {
  SurfaceFit fit;
  fit.runs = posterior.data().runs;
  fit.shapes = posterior.data().shapes.size();
  fit.block_coefficient = posterior.data().block_coefficient;
  compare_forms(posterior, fit);
  fit.law = best_depth_constants(posterior);
  fit.transition_reading = transition_constants(posterior);
  set_slope(posterior, fit);
  set_scales(posterior, fit);
  const SurfaceDraws draws(posterior, kSurfaces, 1);
  for (const double size : shown_sizes(posterior.data())) {
    fit.best_depth.push_back(read_best_depth(draws, posterior.data(), size));
  }
  set_crossings(posterior, draws, fit);
  return fit;
}

std::optional<SurfaceFit> fit_surface(std::span<const RunPoint> points,
                                      const SurfaceOptions& options, std::string& reason) {
  const auto posterior = SurfacePosterior::fit(points, options, reason);
  if (!posterior) return std::nullopt;
  SurfaceFit fit = summarise_surface(*posterior);
  if (posterior->data().length_rule.differs) fit.lengths = fit_lengths(points, options);
  return fit;
}

}  // namespace fathom::fits
