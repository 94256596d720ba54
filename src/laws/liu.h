// The inverse-depth law of Liu 2026 (arXiv 2602.05970), fitted to Chinchilla's points:
//
//   loss = 1.750 + 333.4 d^-0.977 + 1284 (100 L)^-1.20 + 8.49 (T/1e6)^-0.299
//
// Standard errors 0.083 on the width and 0.27 on the depth exponent: in Chinchilla's ladder depth
// and width move together, so the depth exponent is poorly identified.
#pragma once

#include "laws/law.h"

namespace fathom::laws {

class LiuLaw : public Law {
 public:
  LiuLaw();
  const LawInfo& info() const override { return info_; }
  /// The interval takes each exponent one standard error up and down, its term held fixed at the
  /// centre of the data (d = 2000, L = 24).
  Optimum optimum(const Budget& budget) const override;
  std::optional<double> loss(double layers, double width, double parameters,
                             double tokens) const override;

 private:
  LawInfo info_;
};

}  // namespace fathom::laws
