#include "laws/law.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "laws/aspect.h"
#include "laws/gemstones.h"
#include "laws/levine.h"
#include "laws/liu.h"
#include "laws/power_law.h"
#include "laws/search.h"

namespace fathom::laws {
namespace {

/// 0 inside the data. A thousandth of slack lets a rounded edge count as inside.
double log_distance(double value, const Interval& data) {
  constexpr double kEdge = 1.001;
  if (value > data.high * kEdge) return std::log(value / data.high);
  if (value < data.low / kEdge) return std::log(data.low / value);
  return 0;
}

/// "600M", "5B", "8": an edge of a law's data.
std::string edge_text(double value) {
  if (value < 1000) return fmt::format("{:g}", value);
  std::string text = format_count(value, 2);
  if (const auto zero = text.find(".0"); zero != std::string::npos) text.erase(zero, 2);
  return text;
}

}  // namespace

Optimum Law::optimum_after(const Budget& budget, double) const {
  return optimum(budget);
}

std::vector<std::string> Law::objections(const Budget&, double) const {
  return {};
}

std::optional<double> Law::loss(double, double, double, double) const {
  return std::nullopt;
}

LossSurface::LossSurface(const Law& law, const Budget& budget, double tokens)
    : law_(law), budget_(budget), tokens_(tokens) {
  const Optimum best = law.optimum_after(budget, tokens);
  const auto loss = law.loss(best.layers, best.width, budget.parameters(), tokens);
  if (!loss) throw InternalError(fmt::format("law {} has no loss", law.info().name));
  best_layers_ = best.layers;
  best_loss_ = *loss;
}

double LossSurface::penalty(double layers) const {
  return *law_.loss(layers, budget_.width_at(layers), budget_.parameters(), tokens_) / best_loss_ -
         1;
}

Interval LossSurface::band(double tolerance) const {
  // Left of the optimum the penalty falls with depth, right of it it rises.
  const auto inside = [&](double layers) { return penalty(layers) <= tolerance; };
  const auto outside = [&](double layers) { return !inside(layers); };
  return {first_true(inside, 1e-2, best_layers_), first_true(outside, best_layers_, kMaxLayers)};
}

double distance_outside(const LawInfo& law, const Place& place) {
  const double size = log_distance(place.parameters, law.parameters);
  const double depth = log_distance(place.layers, law.layers);
  const double tokens = law.tokens ? log_distance(place.tokens, *law.tokens) : 0;
  return std::hypot(size, depth, tokens);
}

std::string outside_text(const LawInfo& law, const Place& place) {
  std::vector<std::string> ends, starts;
  const auto look = [&](double value, const Interval& data, const char* unit) {
    if (log_distance(value, data) == 0) return;
    (value > data.high ? ends : starts)
        .push_back(edge_text(value > data.high ? data.high : data.low) + " " + unit);
  };
  look(place.parameters, law.parameters, "parameters");
  if (law.tokens) look(place.tokens, *law.tokens, "tokens");
  look(place.layers, law.layers, "layers");
  std::vector<std::string> parts;
  if (!starts.empty()) parts.push_back("start at " + join(starts, ", "));
  if (!ends.empty()) parts.push_back("end at " + join(ends, ", "));
  return parts.empty() ? "" : "its data " + join(parts, " and ");
}

Evidence Law::evidence(const Place& place) const {
  if (!info().fitted) return Evidence::convention;
  return distance_outside(info(), place) == 0 ? Evidence::fitted : Evidence::extrapolated;
}

Evidence Law::optimum_evidence(const Budget& budget, double tokens) const {
  const double layers = optimum_after(budget, tokens).layers;
  return evidence({budget.block_parameters_at(layers), tokens, layers});
}

double depth_on_surface(const Budget& budget, const std::function<double(double)>& depth) {
  // block_parameters_at rises with L more slowly than L itself once embeddings are counted, and is
  // constant otherwise: L - depth(N(L)) changes sign once.
  return first_true(
      [&](double layers) { return layers >= depth(budget.block_parameters_at(layers)); },
      kMinLayers, kMaxLayers);
}

double least_loss_depth(const Budget& budget,
                        const std::function<double(double layers, double width)>& loss_at) {
  return minimise_positive([&](double layers) { return loss_at(layers, budget.width_at(layers)); },
                           0.5, kMaxLayers);
}

const std::vector<LawPointer>& published_laws() {
  static const std::vector<LawPointer> laws{std::make_shared<LevineLaw>(),
                                            std::make_shared<GemstonesLaw>(),
                                            chinchilla_ladder(),
                                            std::make_shared<LiuLaw>(),
                                            std::make_shared<AspectLaw>(100),
                                            std::make_shared<AspectLaw>(64),
                                            std::make_shared<AspectLaw>(128),
                                            published_practice()};
  return laws;
}

LawPointer published_law(const std::string& name) {
  const auto& laws = published_laws();
  const auto found = std::find_if(laws.begin(), laws.end(),
                                  [&](const LawPointer& law) { return law->info().name == name; });
  return found == laws.end() ? nullptr : *found;
}

}  // namespace fathom::laws
