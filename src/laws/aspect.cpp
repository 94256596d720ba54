#include "laws/aspect.h"

#include <fmt/format.h>

#include "laws/search.h"

namespace fathom::laws {

AspectLaw::AspectLaw(double ratio) : ratio_(ratio) {
  const bool kaplan = ratio == 100;
  info_.name = kaplan ? "kaplan2020" : fmt::format("aspect:{:g}", ratio);
  info_.title = kaplan ? "Kaplan 2020, d = 100·L" : fmt::format("d = {:g}·L", ratio);
  info_.source = kaplan ? "arXiv 2001.08361" : "habit";
  info_.claim = "a fixed ratio of width to depth";
  info_.fitted = false;
}

Optimum AspectLaw::optimum(const Budget& budget) const {
  const double layers = first_true(
      [&](double depth) { return ratio_ * depth >= budget.width_at(depth); }, 1e-3, kMaxLayers);
  return {layers, budget.width_at(layers), std::nullopt};
}

}  // namespace fathom::laws
