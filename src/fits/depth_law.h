// How the best depth depends on the size: u*(x) = ln L*, x = ln N, in four forms.
//
//   exponential  depth L is best at width d = e^(a + bL), N = c L d^2 (arXiv 2006.12467):
//                  x = ln c + u + 2a + 2b e^u
//   power        L* ~ N^s:                  u = u0 + s dx
//   ratio        d / L fixed, so N ~ L^3:   u = u0 + dx / 3
//   free         a slope that bends:        u = u0 + s (e^(q dx) - 1) / q
//
// dx = x - x0 with x0 the middle of the study. All forms have the same two coordinates, the best
// depth u0 and the slope s = du*/dx at x0 (kept as ln s), so that the same prior serves all and a
// comparison of exponential and power law does not depend on it. For the exponential law
// 1/s = 1 + 2bL0, hence b = (1/s - 1) / (2 L0) and a = (x0 - ln c - u0)/2 - b L0,
// and with w = u - u0
//   w + (1/s - 1)(e^w - 1) = dx.
// Its slope falls with size, d ln s / dx = -s (1 - s), where the power law's stays constant: the
// bend q of the free form is 0 for a power law and about -s (1 - s) for an exponential one.
#pragma once

#include <Eigen/Core>
#include <array>

#include "core/enum_names.h"

namespace fathom::fits {

enum class LawForm { exponential, power, ratio, free };
constexpr auto enum_names(LawForm) {
  return std::array{"exponential", "power", "ratio", "free"};
}
inline constexpr auto kLawForms = kEnumValues<LawForm>;

class DepthLaw {
 public:
  explicit DepthLaw(LawForm form, double centre) : form_(form), centre_(centre) {}

  LawForm form() const { return form_; }
  double centre() const { return centre_; }
  /// Parameters: u0, then ln s (not for the ratio), then q (free only).
  int size() const;

  struct Place {
    double log_depth = 0;              // u*
    double slope = 0;                  // du*/dx
    std::array<double, 3> gradient{};  // by parameter
  };
  Place at(const double* parameters, double log_size) const;
  /// u* alone.
  double log_depth(const double* parameters, double log_size) const;
  /// The ln N at which e^log_depth layers are best: the inverse of at().
  double log_size(const double* parameters, double log_depth) const;

  struct Constants {
    double a = 0;
    double b = 0;
  };
  /// Of the exponential law, N = block_coefficient L d^2.
  Constants constants(const double* parameters, double block_coefficient) const;

 private:
  LawForm form_;
  double centre_;
};

}  // namespace fathom::fits
