#include "laws/levine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "laws/lambert_w.h"

namespace fathom::laws {

std::string LevineFit::formula() const {
  return fmt::format("{:.3f} + {:.4f}·L", a, b);
}

LevineLaw::LevineLaw(LevineFit fit) : fit_(fit) {
  info_.name = kName;
  info_.title = "Levine 2020";
  info_.source = "arXiv 2006.12467";
  info_.claim = fmt::format("ln d = {}: the width from which depth L pays", fit.formula());
  info_.parameters = fit.parameters;
  info_.layers = fit.layers;
  info_.interval_meaning = "one sigma of the fit's a and b";
}

double LevineLaw::transition_width(double layers) const {
  return std::exp(fit_.a + fit_.b * layers);
}

double LevineLaw::log_width_error(double layers) const {
  const double slope = layers * fit_.b_error;
  return std::sqrt(fit_.a_error * fit_.a_error + slope * slope +
                   2 * fit_.correlation * fit_.a_error * slope);
}

double LevineLaw::transition_parameters(double layers) const {
  return paper_parameters(layers, transition_width(layers));
}

double LevineLaw::depth_for(double parameters) const {
  return lambert_w(2 * fit_.b * parameters * std::exp(-2 * fit_.a) / kPaperBlockCoefficient) /
         (2 * fit_.b);
}

double LevineLaw::depth_at_width(double width) const {
  return (std::log(width) - fit_.a) / fit_.b;
}

Optimum LevineLaw::optimum(const Budget& budget) const {
  // The law is stated in 12 L d^2; on that surface the closed form holds, on others the crossing of
  // d_x(L) with the surface is found numerically.
  const double to_paper_count = kPaperBlockCoefficient / budget.block_coefficient();
  const double layers = budget.is_paper_count()
                            ? std::max(kMinLayers, depth_for(budget.parameters()))
                            : depth_on_surface(budget, [&](double block) {
                                return depth_for(block * to_paper_count);
                              });
  // On the surface 2 (a + b L) + ln L is constant: dL (1/L + 2b) = -2 d(ln d_x).
  const double sigma = 2 * log_width_error(layers) / (1 / layers + 2 * fit_.b);
  return {layers, budget.width_at(layers),
          Interval{std::max(kMinLayers, layers - sigma), layers + sigma}};
}

}  // namespace fathom::laws
