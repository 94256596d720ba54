// L = c N^e fitted to a set of published shapes by least squares of ln L on ln N, N = 12 L d^2:
// Chinchilla's ladder of 50 sweep models, and what released dense decoders do ("practice").
//
// Both describe choices that people made, not optima that they measured: their statements are
// marked `convention`.
#pragma once

#include "laws/law.h"

namespace fathom::laws {

struct PowerFit {
  double coefficient = 0;
  double exponent = 0;
  double scatter = 0;  // standard deviation of ln L about the line
  std::size_t points = 0;
  Interval parameters;
  Interval layers;
};

struct ShapePoint {
  double parameters;
  double layers;
};
PowerFit fit_power_law(const std::vector<ShapePoint>& points);

class PowerLaw : public Law {
 public:
  PowerLaw(LawInfo info, PowerFit fit);
  const LawInfo& info() const override { return info_; }
  const PowerFit& fit() const { return fit_; }
  /// The interval is the scatter of the published shapes.
  Optimum optimum(const Budget& budget) const override;

 private:
  LawInfo info_;
  PowerFit fit_;
};

std::shared_ptr<const PowerLaw> chinchilla_ladder();
std::shared_ptr<const PowerLaw> published_practice();

}  // namespace fathom::laws
