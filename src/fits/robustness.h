// Does the answer hold when training changes? Runs of the shapes around the best depth are repeated
// with another learning rate, batch size or seed; this judges how far the best depth moves.
//
// Shape by shape, d_i = ln loss(changed) - ln loss(as studied), of variance
// sigma_L^2 (1/n_changed + 1/n_studied): a shape's own deviation drops out. At each size
//   d_i = level + tilt ln L_i,
// and a tilt moves the minimum of a bowl of curvature k by -tilt / k in ln L. k comes from the
// study's surface with its uncertainty.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "fits/surface_fit.h"

namespace fathom::fits {

/// Runs with one thing changed.
struct TrainingChange {
  std::string name;  // "rate x 0.5"
  std::vector<RunPoint> runs;
};

enum class Holds { yes, no, unclear };
constexpr auto enum_names(Holds) {
  return std::array{"holds", "moves", "unclear"};
}

struct ChangeVerdict {
  std::string name;
  std::size_t shapes = 0;   // compared with the study's own runs
  double loss_change = 0;   // mean of ln loss
  double shift = 0;         // of ln best depth
  Interval shift_interval;  // 95 %
  double layers = 0;        // best depth with the change
  Holds holds = Holds::unclear;
  std::string reason;  // why it is unclear
};

struct Robustness {
  BestDepth best;  // of the study
  std::vector<ChangeVerdict> changes;
};

/// At `params`. A change holds when the best depth stays inside the study's interval and is
/// determined as precisely as that; it does not when it leaves the interval and the shift is not
/// noise. Absent, with the reason, when the study has no surface.
std::optional<Robustness> judge_robustness(std::span<const RunPoint> study,
                                           std::span<const TrainingChange> changes, double params,
                                           const SurfaceOptions& options, std::string& reason);

}  // namespace fathom::fits
