// The first round of a design, and the seeds that its runs get.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "fits/goal_forecast.h"

namespace fathom::fits {

/// From this many shapes on, a surface can be fitted safely.
inline constexpr std::size_t kFirstShapes = 14;

/// Assigns seeds: the smallest positive number that no run of the shape has.
class Seeds {
 public:
  explicit Seeds(std::span<const RunPoint> runs) {
    for (const RunPoint& run : runs) used_[{run.layers, run.width}].insert(run.seed);
  }
  std::size_t shapes() const { return used_.size(); }
  bool has(const CandidateShape& shape) const {
    return used_.contains({shape.layers, shape.width});
  }
  std::uint64_t next(const CandidateShape& shape) {
    std::set<std::uint64_t>& used = used_[{shape.layers, shape.width}];
    std::uint64_t seed = 1;
    while (used.contains(seed)) ++seed;
    used.insert(seed);
    return seed;
  }

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, std::set<std::uint64_t>> used_;
};

/// Adds a trajectory to the batch.
void ask_for(const Candidate& candidate, Seeds& seeds, DesignStep& step);

/// Depths around the published best depth, from the smallest size up as far as a share of the
/// budget reaches; where that leaves too few shapes, any others.
void first_round(const DesignSpec& spec, const std::vector<Candidate>& candidates, Seeds& seeds,
                 double money, DesignStep& step);

}  // namespace fathom::fits
