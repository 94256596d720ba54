// The law at each training length: runs of about one length fitted by themselves, alongside the one
// parameter of the common fit that moves the law (SurfaceFit::length_move).
#pragma once

#include <span>
#include <vector>

#include "fits/run_point.h"
#include "fits/surface_fit.h"

namespace fathom::fits {

/// Shortest first; lengths with too few runs for a surface are left out, and of more than five the
/// shortest, the longest and three between are taken. Empty when the runs have one length.
std::vector<LengthLaw> fit_lengths(std::span<const RunPoint> points, const SurfaceOptions& options);

}  // namespace fathom::fits
