#include "fits/surface_lengths.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace fathom::fits {
namespace {

// Lengths closer than this in ln(tokens) count as one.
constexpr double kSameClassLength = 0.15;
constexpr std::size_t kMostLengths = 5;

struct LengthClass {
  double z = 0;  // of its first run
  std::vector<RunPoint> runs;
};

std::vector<LengthClass> classes_of(std::span<const RunPoint> points, const LengthRule& rule) {
  std::vector<std::pair<double, RunPoint>> ordered;
  for (const RunPoint& run : points) {
    ordered.emplace_back(rule.of(std::log(run.params), run.tokens), run);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<LengthClass> classes;
  for (auto& [z, run] : ordered) {
    if (classes.empty() || z - classes.back().z > kSameClassLength) classes.push_back({z, {}});
    classes.back().runs.push_back(std::move(run));
  }
  return classes;
}

}  // namespace

std::vector<LengthLaw> fit_lengths(std::span<const RunPoint> points,
                                   const SurfaceOptions& options) {
  const SurfaceData data = fold_runs(points);
  std::vector<LengthLaw> laws;
  if (!data.length_rule.differs) return laws;
  const std::vector<LengthClass> classes = classes_of(points, data.length_rule);
  if (classes.size() < 2) return laws;
  std::set<std::size_t> chosen;
  const std::size_t count = std::min(kMostLengths, classes.size());
  for (std::size_t i = 0; i < count; ++i) {
    chosen.insert(count > 1 ? i * (classes.size() - 1) / (count - 1) : 0);
  }
  for (const std::size_t place : chosen) {
    std::string reason;
    const std::vector<RunPoint>& runs = classes[place].runs;
    const auto fit = fit_surface(runs, options, reason);
    if (!fit) continue;
    LengthLaw law;
    law.share = std::exp(classes[place].z);
    law.tokens = {1e300, 0};
    for (const RunPoint& run : runs) {
      law.tokens.low = std::min(law.tokens.low, run.tokens);
      law.tokens.high = std::max(law.tokens.high, run.tokens);
    }
    law.runs = runs.size();
    law.law = fit->law;
    law.best = fit->best_depth.back();
    laws.push_back(law);
  }
  return laws;
}

}  // namespace fathom::fits
