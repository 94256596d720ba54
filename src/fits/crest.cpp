#include "fits/crest.h"

#include <algorithm>
#include <cmath>

namespace fathom::fits {

Eigen::VectorXd Crest::tangent(std::size_t knot) const {
  const std::size_t before = knot == 0 ? 0 : knot - 1;
  const std::size_t after = std::min(knot + 1, bends_.size() - 1);
  return (bends_[after] - bends_[before]) / static_cast<double>(after - before);
}

void Crest::bend(Eigen::VectorXd& off) const {
  if (bends_.empty()) return;
  const auto last = static_cast<double>(bends_.size() - 1);
  const double place = off[along_] / step_ + last / 2;
  const double inside = std::clamp(place, 0.0, last);
  const auto knot = std::min(static_cast<std::size_t>(inside), bends_.size() - 2);
  // A cubic Hermite spline with slopes from the neighbours (Catmull-Rom); straight beyond the ends.
  const double t = inside - static_cast<double>(knot);
  const double s = 1 - t;
  off += s * s * (1 + 2 * t) * bends_[knot] + t * t * (1 + 2 * s) * bends_[knot + 1] +
         t * s * s * tangent(knot) - t * t * s * tangent(knot + 1);
  if (place != inside) off += (place - inside) * tangent(place < 0 ? 0 : bends_.size() - 1);
}

}  // namespace fathom::fits
