#include "laws/power_law.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "shape/catalogue.h"

namespace fathom::laws {
namespace {

std::vector<ShapePoint> points_of(const std::function<bool(const CatalogueEntry&)>& wanted) {
  std::vector<ShapePoint> points;
  for (const CatalogueEntry& entry : catalogue()) {
    if (!wanted(entry)) continue;
    const double L = as_double(entry.shape.layers);
    const double D = as_double(entry.shape.width);
    points.push_back({paper_parameters(L, D), L});
  }
  return points;
}

std::shared_ptr<const PowerLaw> make_law(const char* name, const char* title, const char* source,
                                         const std::vector<ShapePoint>& points) {
  const PowerFit fit = fit_power_law(points);
  LawInfo info;
  info.name = name;
  info.title = title;
  info.source = source;
  info.claim =
      fmt::format("L = {:.3f}·N^{:.3f}, {} shapes", fit.coefficient, fit.exponent, fit.points);
  info.fitted = false;
  info.parameters = fit.parameters;
  info.layers = fit.layers;
  info.interval_meaning = fmt::format("scatter of the shapes, ±{:.0f} %", 100 * fit.scatter);
  return std::make_shared<PowerLaw>(std::move(info), fit);
}

}  // namespace

PowerFit fit_power_law(const std::vector<ShapePoint>& points) {
  if (points.size() < 3) throw InternalError("a power law needs three shapes");
  const double n = as_double(points.size());
  double mean_x = 0;
  double mean_y = 0;
  for (const ShapePoint& p : points) {
    mean_x += std::log(p.parameters) / n;
    mean_y += std::log(p.layers) / n;
  }
  double xx = 0;
  double xy = 0;
  for (const ShapePoint& p : points) {
    const double x = std::log(p.parameters) - mean_x;
    xx += x * x;
    xy += x * (std::log(p.layers) - mean_y);
  }
  PowerFit fit;
  fit.points = points.size();
  fit.exponent = xy / xx;
  fit.coefficient = std::exp(mean_y - fit.exponent * mean_x);
  double squares = 0;
  fit.parameters = {points[0].parameters, points[0].parameters};
  fit.layers = {points[0].layers, points[0].layers};
  for (const ShapePoint& p : points) {
    const double residual =
        std::log(p.layers / fit.coefficient) - fit.exponent * std::log(p.parameters);
    squares += residual * residual;
    fit.parameters.low = std::min(fit.parameters.low, p.parameters);
    fit.parameters.high = std::max(fit.parameters.high, p.parameters);
    fit.layers.low = std::min(fit.layers.low, p.layers);
    fit.layers.high = std::max(fit.layers.high, p.layers);
  }
  fit.scatter = std::sqrt(squares / (n - 2));
  return fit;
}

PowerLaw::PowerLaw(LawInfo info, PowerFit fit) : info_(std::move(info)), fit_(fit) {}

Optimum PowerLaw::optimum(const Budget& budget) const {
  const double layers = depth_on_surface(budget, [&](double parameters) {
    return fit_.coefficient * std::pow(parameters, fit_.exponent);
  });
  const double factor = std::exp(fit_.scatter);
  return {layers, budget.width_at(layers), Interval{layers / factor, layers * factor}};
}

std::shared_ptr<const PowerLaw> chinchilla_ladder() {
  static const auto law =
      make_law("chinchilla", "Chinchilla's ladder", "arXiv 2203.15556",
               points_of([](const CatalogueEntry& entry) { return entry.chinchilla_sweep(); }));
  return law;
}

std::shared_ptr<const PowerLaw> published_practice() {
  static const auto law = make_law("practice", "Published practice", "the catalogue",
                                   points_of([](const CatalogueEntry& entry) {
                                     return entry.dense_decoder() && !entry.sweep_member();
                                   }));
  return law;
}

}  // namespace fathom::laws
