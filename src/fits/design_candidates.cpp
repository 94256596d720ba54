#include "fits/design_candidates.h"

#include <algorithm>
#include <cmath>

namespace fathom::fits {
namespace {

// How finely a rung's size is moved, and how far: a quarter of the way to its neighbours.
constexpr int kMoves = 20;

std::int64_t nearest_width(double params, std::int64_t layers, std::int64_t head_size) {
  const double heads =
      std::sqrt(params / (12 * static_cast<double>(layers))) / static_cast<double>(head_size);
  // Nearest in ln N: the border between two widths is their geometric mean.
  const double below = std::max(1.0, std::floor(heads));
  return head_size * std::llround(heads * heads > below * (below + 1) ? below + 1 : below);
}

double count(std::int64_t layers, std::int64_t width) {
  const auto d = static_cast<double>(width);
  return 12 * static_cast<double>(layers) * d * d;
}

/// The shapes of one size; `mismatch` is the mean square of ln(N / size).
std::vector<CandidateShape> rung(const CandidateLimits& limits, double size, double& mismatch) {
  std::vector<CandidateShape> shapes;
  mismatch = 0;
  for (const std::int64_t layers : limits.depths) {
    const std::int64_t width = nearest_width(size, layers, limits.head_size);
    const double params = count(layers, width);
    const double off = std::log(params / size);
    if (width < limits.least_width || std::fabs(off) > limits.tolerance) continue;
    if (params > 1.05 * limits.largest || params < limits.smallest / 1.05) continue;
    shapes.push_back({layers, width, params});
    mismatch += off * off;
  }
  // A missing depth counts as a mismatch of the whole tolerance.
  const double missing = static_cast<double>(limits.depths.size() - shapes.size());
  mismatch += missing * limits.tolerance * limits.tolerance;
  return shapes;
}

}  // namespace

std::vector<CandidateShape> candidate_shapes(const CandidateLimits& limits) {
  std::vector<CandidateShape> all;
  const double range = std::log(limits.largest / limits.smallest);
  const int steps = std::max(0, static_cast<int>(std::lround(range / std::log(limits.rung_ratio))));
  for (int i = 0; i <= steps; ++i) {
    const double centre = std::log(limits.smallest) + (steps > 0 ? range * i / steps : 0);
    const double reach = steps > 0 ? range / steps / 4 : 0;
    std::vector<CandidateShape> best;
    double least = 1e300;
    for (int move = -kMoves; move <= kMoves; ++move) {
      const double size = std::exp(centre + reach * move / kMoves);
      double mismatch = 0;
      std::vector<CandidateShape> shapes = rung(limits, size, mismatch);
      if (mismatch < least - 1e-12) least = mismatch, best = std::move(shapes);
    }
    all.insert(all.end(), best.begin(), best.end());
  }
  std::sort(all.begin(), all.end(), [](const CandidateShape& a, const CandidateShape& b) {
    return std::pair(a.params, a.layers) < std::pair(b.params, b.layers);
  });
  const auto same = [](const CandidateShape& a, const CandidateShape& b) {
    return a.layers == b.layers && a.width == b.width;
  };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  return all;
}

}  // namespace fathom::fits
