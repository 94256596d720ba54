// The width-depth law of Gemstones 2025 (arXiv 2502.06857), additive in width w, depth L,
// parameters P and tokens T:
//
//   loss = e^{c_w} w^-x_w + e^{c_L} L^-x_L + e^{c_P} P^-x_P + e^{c_T} T^-x_T + e^{c_E}
//
// Coefficients: the repository's fit to the cool-down losses (Huber delta 1e-4). At a fixed budget
// P is constant, so the choice of count for P shifts the loss but not the optimum; being additive,
// the form gives one optimal depth for every token count, though the data show depth rising with
// tokens.
#pragma once

#include "laws/law.h"

namespace fathom::laws {

struct GemstonesFit {
  std::string set;
  double width_exponent, width_log;
  double depth_exponent, depth_log;
  double parameter_exponent, parameter_log;
  double token_exponent, token_log;
  double constant_log;
};

/// The published fits of the full form (data/gemstones_fits.csv), the default first.
const std::vector<GemstonesFit>& gemstones_fits();

class GemstonesLaw : public Law {
 public:
  static constexpr const char* kName = "gemstones2025";

  GemstonesLaw();
  explicit GemstonesLaw(GemstonesFit fit);

  const LawInfo& info() const override { return info_; }
  /// The interval is the range over all published fits of the form.
  Optimum optimum(const Budget& budget) const override;
  std::optional<double> loss(double layers, double width, double parameters,
                             double tokens) const override;

 private:
  GemstonesFit fit_;
  LawInfo info_;
};

}  // namespace fathom::laws
