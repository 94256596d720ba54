// The inverse-depth law of Liu 2026 (arXiv 2602.05970), fitted to Chinchilla's points:
//
//   loss = E + c_d d^-x_d + c_L (100 L)^-x_L + c_T (T/1e6)^-x_T
//
// In Chinchilla's ladder depth and width move together, so the depth exponent is poorly identified:
// its standard error is a fifth of its value. The numbers are in liu.cpp.
#pragma once

#include "laws/law.h"

namespace fathom::laws {

class LiuLaw : public Law {
 public:
  LiuLaw();
  const LawInfo& info() const override { return info_; }
  /// The interval moves each exponent by one standard error up and down, with its term fixed at the
  /// centre of the data (d = 2000, L = 24).
  Optimum optimum(const Budget& budget) const override;
  std::optional<double> loss(double layers, double width, double parameters,
                             double tokens) const override;

 private:
  LawInfo info_;
};

}  // namespace fathom::laws
