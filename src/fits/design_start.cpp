#include "fits/design_start.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "laws/levine.h"

namespace fathom::fits {
namespace {

// The first round takes every second size and at most five depths, up to a factor of four from
// the published best depth.
constexpr std::size_t kFirstStride = 2;
constexpr double kFirstReach = 1.45;
constexpr std::array kFirstDepths{-1.3, -0.65, 0.0, 0.65, 1.3};
// The first round may cost this share of the budget, or up to half of it to cover kFirstSizes
// sizes.
constexpr double kFirstShare = 0.005;
constexpr double kFirstLimit = 0.5;
constexpr std::size_t kFirstSizes = 4;

/// Candidates by size: every second rung of the ladder.
std::vector<std::vector<std::size_t>> first_rungs(const DesignSpec& spec,
                                                  const std::vector<Candidate>& candidates) {
  std::vector<std::vector<std::size_t>> rungs;
  double last = 0;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const double params = candidates[c].shape.params;
    if (rungs.empty() || params > last * std::sqrt(spec.limits.rung_ratio)) {
      rungs.emplace_back();
      last = params;
    }
    rungs.back().push_back(c);
  }
  std::vector<std::vector<std::size_t>> chosen;
  for (std::size_t r = 0; r < rungs.size(); r += kFirstStride) chosen.push_back(rungs[r]);
  return chosen;
}

/// Of a rung, depths around the published best depth, without shapes run before.
std::set<std::size_t> first_depths(const DesignSpec& spec, const std::vector<Candidate>& candidates,
                                   const std::vector<std::size_t>& rung, const Seeds& seeds) {
  const double low = std::log(static_cast<double>(spec.limits.depths.front()));
  const double high = std::log(static_cast<double>(spec.limits.depths.back()));
  const double size = candidates[rung.front()].shape.params;
  const double best = std::clamp(std::log(laws::LevineLaw().depth_for(size)), low, high);
  std::set<std::size_t> chosen;
  for (const double off : kFirstDepths) {
    std::optional<std::size_t> nearest;
    double least = 0.6;  // further away belongs to another offset
    for (const std::size_t c : rung) {
      const double u = std::log(static_cast<double>(candidates[c].shape.layers));
      if (std::fabs(u - best) > kFirstReach) continue;
      if (std::fabs(u - best - off) < least) least = std::fabs(u - best - off), nearest = c;
    }
    if (nearest && !seeds.has(candidates[*nearest].shape)) chosen.insert(*nearest);
  }
  return chosen;
}

}  // namespace

void ask_for(const Candidate& candidate, Seeds& seeds, DesignStep& step) {
  step.batch.push_back({candidate.shape.layers, candidate.shape.width, seeds.next(candidate.shape),
                        candidate.lengths, candidate.cost});
  step.batch_cost += candidate.cost;
}

void first_round(const DesignSpec& spec, const std::vector<Candidate>& candidates, Seeds& seeds,
                 double money, DesignStep& step) {
  const double wanted = std::min(money, kFirstShare * spec.budget);
  const double limit = std::min(money, kFirstLimit * spec.budget);
  std::size_t sizes = 0;
  for (const std::vector<std::size_t>& rung : first_rungs(spec, candidates)) {
    const std::set<std::size_t> chosen = first_depths(spec, candidates, rung, seeds);
    double cost = step.batch_cost;
    for (const std::size_t c : chosen) cost += candidates[c].cost;
    if (cost > (sizes < kFirstSizes ? limit : wanted)) break;
    ++sizes;
    for (const std::size_t c : chosen) ask_for(candidates[c], seeds, step);
  }
  for (const Candidate& candidate : candidates) {
    if (seeds.shapes() >= kFirstShapes || step.batch_cost + candidate.cost > limit) break;
    if (!seeds.has(candidate.shape)) ask_for(candidate, seeds, step);
  }
}

}  // namespace fathom::fits
