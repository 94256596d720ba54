#include "laws/law.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "laws/aspect.h"
#include "laws/gemstones.h"
#include "laws/levine.h"
#include "laws/liu.h"
#include "laws/power_law.h"
#include "laws/search.h"

namespace fathom::laws {

Optimum Law::optimum_after(const Budget& budget, double) const {
  return optimum(budget);
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

Evidence Law::evidence(const Budget& budget) const {
  if (!info().fitted) return Evidence::convention;
  const double size = budget.block_parameters_at(optimum(budget).layers);
  const Interval& domain = info().parameters;
  return size >= domain.low && size <= domain.high ? Evidence::fitted : Evidence::extrapolated;
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
