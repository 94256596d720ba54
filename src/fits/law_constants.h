// a and b of ln d = a + b L in the two readings of the published law (arXiv 2006.12467), from the
// exponential form of the surface.
//
//   best depth   L layers are best at width d. The published table of optimal depths uses this
//                reading.
//   transition   m layers begin to beat the next shallower depth l at width d. The published fit
//                was made from such transitions of trained pairs.
//
// One surface gives both, and they differ: l and m cross at the size N at which L_c, about
// sqrt(l m) layers, are best (depth_surface.h). With N = c L d^2 the deeper network's width there
// is
//   ln d = a + b L_c + ln(L_c / m) / 2,
// so a line through these widths against m has a slope of about b sqrt(l / m): 0.82 b for depths
// 1.5 times apart, 0.71 b for twice. It depends on which depths were trained; the best depth does
// not.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/interval.h"
#include "fits/surface_posterior.h"

namespace fathom::fits {

struct LawConstants {
  double a = 0;
  double b = 0;
  double a_error = 0;  // half the 95 % interval over 1.96
  double b_error = 0;
  double correlation = 0;
  Interval a_interval;
  Interval b_interval;
};

/// L layers are best at width d.
LawConstants best_depth_constants(const SurfacePosterior& posterior);

struct TransitionReading {
  LawConstants law;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;  // shallower, deeper
};

/// The least-squares line through the widths at which neighbouring trained depths cross within the
/// sizes trained; absent when fewer than two pairs do.
std::optional<TransitionReading> transition_constants(const SurfacePosterior& posterior);

}  // namespace fathom::fits
