#include "laws/liu.h"

#include <algorithm>
#include <cmath>

namespace fathom::laws {
namespace {

constexpr double kWidthExponent = 0.977;
constexpr double kWidthError = 0.083;
constexpr double kDepthExponent = 1.20;
constexpr double kDepthError = 0.27;
constexpr double kCentreWidth = 2000;
constexpr double kCentreLayers = 24;

double width_term(double width) {
  return 333.4 * std::pow(width, -kWidthExponent);
}
double depth_term(double layers) {
  return 1284 * std::pow(100 * layers, -kDepthExponent);
}

/// The optimum with both exponents moved; terms keep their value at the centre of the data.
double best_depth(const Budget& budget, double width_shift, double depth_shift) {
  return least_loss_depth(budget, [&](double layers, double width) {
    return width_term(width) * std::pow(width / kCentreWidth, -width_shift) +
           depth_term(layers) * std::pow(layers / kCentreLayers, -depth_shift);
  });
}

}  // namespace

LiuLaw::LiuLaw() {
  info_.name = "liu2026";
  info_.title = "Liu 2026";
  info_.source = "arXiv 2602.05970";
  info_.claim = "loss = 1.750 + 333.4·d^-0.977 + 1284·(100·L)^-1.20 + 8.49·(T/1e6)^-0.299";
  info_.parameters = {40e6, 15e9};
  info_.interval_meaning = "one standard error of each exponent";
}

Optimum LiuLaw::optimum(const Budget& budget) const {
  const double layers = best_depth(budget, 0, 0);
  Interval range{layers, layers};
  for (const double width_shift : {-kWidthError, kWidthError}) {
    for (const double depth_shift : {-kDepthError, kDepthError}) {
      const double depth = best_depth(budget, width_shift, depth_shift);
      range.low = std::min(range.low, depth);
      range.high = std::max(range.high, depth);
    }
  }
  return {layers, budget.width_at(layers), range};
}

std::optional<double> LiuLaw::loss(double layers, double width, double, double tokens) const {
  return 1.750 + width_term(width) + depth_term(layers) + 8.49 * std::pow(tokens / 1e6, -0.299);
}

}  // namespace fathom::laws
