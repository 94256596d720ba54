#include "fits/robustness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/random.h"
#include "fits/surface_draws.h"

namespace fathom::fits {
namespace {

// Sizes closer than this in ln N are compared with each other.
constexpr double kSamePairSize = 0.3;
constexpr std::size_t kRobustnessDraws = 2000;

/// A shape and length with its mean ln loss.
struct Cell {
  double log_size = 0;
  double sum = 0;
  double count = 0;
};
using CellKey = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // layers, width, length
using Cells = std::map<CellKey, Cell>;

Cells cells_of(std::span<const RunPoint> runs) {
  Cells cells;
  for (const RunPoint& run : runs) {
    Cell& cell = cells[{run.layers, run.width, std::llround(100 * std::log(run.tokens))}];
    cell.log_size = std::log(run.params);
    cell.sum += std::log(run.loss);
    ++cell.count;
  }
  return cells;
}

struct Difference {
  double log_size = 0;
  double log_depth = 0;
  double value = 0;
  double variance = 0;
};

std::vector<Difference> differences(const Cells& studied, const Cells& changed,
                                    const SurfaceFit& fit) {
  std::vector<Difference> found;
  for (const auto& [key, cell] : changed) {
    const auto own = studied.find(key);
    if (own == studied.end()) continue;
    double noise = fit.noise;
    for (const DepthNoise& depth : fit.depth_noise) {
      if (depth.layers == std::get<0>(key)) noise = depth.noise;
    }
    found.push_back({cell.log_size, std::log(static_cast<double>(std::get<0>(key))),
                     cell.sum / cell.count - own->second.sum / own->second.count,
                     noise * noise * (1 / cell.count + 1 / own->second.count)});
  }
  std::sort(found.begin(), found.end(),
            [](const Difference& a, const Difference& b) { return a.log_size < b.log_size; });
  return found;
}

struct Tilt {
  double value = 0;
  double error = 0;
  bool known = false;
};

/// Weighted least squares with a level for each size.
Tilt tilt_of(const std::vector<Difference>& all) {
  double cross = 0;
  double square = 0;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i;
    double weight = 0;
    double depth = 0;
    double value = 0;
    for (; end < all.size() && all[end].log_size - all[i].log_size < kSamePairSize; ++end) {
      const double w = 1 / all[end].variance;
      weight += w;
      depth += w * all[end].log_depth;
      value += w * all[end].value;
    }
    for (std::size_t j = i; j < end; ++j) {
      const double off = all[j].log_depth - depth / weight;
      cross += off * (all[j].value - value / weight) / all[j].variance;
      square += off * off / all[j].variance;
    }
    i = end;
  }
  if (!(square > 0)) return {};
  return {cross / square, 1 / std::sqrt(square), true};
}

/// Quantiles of -(tilt) / k over the tilt's error and the curvatures' posterior.
Interval shift_interval(const SurfacePosterior& posterior, const Tilt& tilt, double log_size,
                        double& middle) {
  const FormPosterior& form = posterior.form(LawForm::free);
  const RandomStream random(1, 3000);
  WeightedSample sample;
  std::uint64_t next = 0;
  const std::size_t turns = std::max<std::size_t>(1, kRobustnessDraws / form.draws.size());
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (const WeightedDraw& draw : form.draws) {
      const double curvature = form.surface.curvature(draw.point, log_size);
      const double drawn = tilt.value + tilt.error * random.normal(next++);
      sample.add(-drawn / curvature, draw.weight / static_cast<double>(turns));
    }
  }
  sample.sort();
  middle = sample.quantile(0.5);
  return sample.interval();
}

void judge(const BestDepth& best, ChangeVerdict& verdict) {
  if (!best.low || !best.high) {
    verdict.reason = "the study's own best depth has no two-sided interval";
    return;
  }
  const double low = std::log(*best.low);
  const double high = std::log(*best.high);
  const double moved = std::log(best.layers) + verdict.shift;
  const bool inside = low <= moved && moved <= high;
  const bool real = verdict.shift_interval.low > 0 || verdict.shift_interval.high < 0;
  const double sharpness = verdict.shift_interval.high - verdict.shift_interval.low;
  if (!inside && real) {
    verdict.holds = Holds::no;
  } else if (inside && sharpness <= 2 * (high - low)) {
    verdict.holds = Holds::yes;
  } else {
    verdict.reason = inside ? "too few runs to tell a shift from none"
                            : "the shift may be noise; repeat these runs with another seed";
  }
}

}  // namespace

std::optional<Robustness> judge_robustness(std::span<const RunPoint> study,
                                           std::span<const TrainingChange> changes, double params,
                                           const SurfaceOptions& options, std::string& reason) {
  const auto posterior = SurfacePosterior::fit(study, options, reason);
  if (!posterior) return std::nullopt;
  const SurfaceFit fit = summarise_surface(*posterior);
  Robustness result;
  result.best = best_depth_at(*posterior, params);
  const Cells studied = cells_of(study);
  for (const TrainingChange& change : changes) {
    ChangeVerdict verdict;
    verdict.name = change.name;
    const auto all = differences(studied, cells_of(change.runs), fit);
    std::set<double> depths;
    double sum = 0;
    for (const Difference& d : all) {
      depths.insert(d.log_depth);
      sum += d.value;
    }
    verdict.shapes = all.size();
    if (!all.empty()) verdict.loss_change = sum / static_cast<double>(all.size());
    const Tilt tilt = tilt_of(all);
    if (!tilt.known) {
      verdict.layers = result.best.layers;
      verdict.reason = fmt::format(
          "{} shapes of the study repeated; two depths of about one size "
          "are needed",
          all.size());
    } else {
      verdict.shift_interval = shift_interval(*posterior, tilt, std::log(params), verdict.shift);
      verdict.layers = result.best.layers * std::exp(verdict.shift);
      judge(result.best, verdict);
    }
    result.changes.push_back(std::move(verdict));
  }
  return result;
}

}  // namespace fathom::fits
