#include "laws/liu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fathom::laws {
namespace {

// As printed by the authors' fitting notebook (repository liuyz0/DepthScaling, Scaling/fit-5); the
// three or four digits usually quoted move the optimal depth by 0.7 %.
constexpr double kWidthCoefficient = 333.3808501910344;
constexpr double kWidthExponent = 0.9769136309623718;
constexpr double kWidthError = 0.08327;
constexpr double kDepthCoefficient = 1284.3676595484178;
constexpr double kDepthExponent = 1.201390266418457;
constexpr double kDepthError = 0.26854;
constexpr double kTokenCoefficient = 8.48674282280199;
constexpr double kTokenExponent = 0.29909613728523254;
constexpr double kConstant = 1.7503269910812378;
constexpr double kCentreWidth = 2000;
constexpr double kCentreLayers = 24;

double width_term(double width) {
  return kWidthCoefficient * std::pow(width, -kWidthExponent);
}
double depth_term(double layers) {
  return kDepthCoefficient * std::pow(100 * layers, -kDepthExponent);
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
  info_.claim = fmt::format(
      "loss = {:.3f} + {:.1f}·d^-{:.3f} + {:.0f}·(100·L)^-{:.2f} + {:.2f}·(T/1e6)^-{:.3f}",
      kConstant, kWidthCoefficient, kWidthExponent, kDepthCoefficient, kDepthExponent,
      kTokenCoefficient, kTokenExponent);
  info_.parameters = {40e6, 15e9};
  info_.layers = {8, 49};               // of Chinchilla's ladder
  info_.tokens = Interval{5e9, 500e9};  // as the abstract of arXiv 2203.15556 gives them
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
  return kConstant + width_term(width) + depth_term(layers) +
         kTokenCoefficient * std::pow(tokens / 1e6, -kTokenExponent);
}

}  // namespace fathom::laws
