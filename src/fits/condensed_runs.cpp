#include "fits/condensed_runs.h"

#include <fmt/format.h>

#include <cmath>

#include "core/counts.h"

namespace fathom::fits {
namespace {

bool is_repeat(const RunPoint& a, const RunPoint& b) {
  return a.layers == b.layers && a.width == b.width && a.params == b.params && a.tokens == b.tokens;
}

RunPoint mean_run(std::span<const RunPoint> repeats) {
  RunPoint mean = repeats.front();
  if (repeats.size() == 1) return mean;
  double sum = 0;
  for (const RunPoint& run : repeats) sum += std::log(run.loss);
  mean.loss = std::exp(sum / as_double(repeats.size()));
  mean.id += fmt::format(" and {} repeats", repeats.size() - 1);
  return mean;
}

std::vector<RunPoint> average_repeats(std::span<const RunPoint> sorted, std::size_t group) {
  std::vector<RunPoint> means;
  for (std::size_t first = 0; first < sorted.size();) {
    std::size_t end = first + 1;
    while (end < sorted.size() && end - first < group && is_repeat(sorted[first], sorted[end])) {
      ++end;
    }
    means.push_back(mean_run(sorted.subspan(first, end - first)));
    first = end;
  }
  return means;
}

}  // namespace

CondensedRuns condense_runs(std::span<const RunPoint> sorted, std::size_t most) {
  if (sorted.size() <= most) return {{sorted.begin(), sorted.end()}, ""};
  std::size_t group = (sorted.size() + most - 1) / most;
  CondensedRuns condensed{average_repeats(sorted, group), ""};
  // Incomplete groups can leave more than `most`: larger groups, as long as they help.
  for (std::size_t before = sorted.size();
       condensed.runs.size() > most && condensed.runs.size() < before;) {
    before = condensed.runs.size();
    group *= 2;
    condensed.runs = average_repeats(sorted, group);
  }
  std::string what;
  if (condensed.runs.size() < sorted.size()) {
    what = fmt::format("repeats of a shape and length were averaged, up to {} at a time", group);
  }
  if (condensed.runs.size() > most) {
    const std::size_t left = condensed.runs.size();
    std::vector<RunPoint> spread;
    for (std::size_t i = 0; i < most; ++i) spread.push_back(condensed.runs[i * left / most]);
    condensed.runs = std::move(spread);
    what += fmt::format("{}{} of {} were taken, evenly over shapes and lengths",
                        what.empty() ? "" : ", and ", most, left);
  }
  condensed.note = fmt::format("{} runs are more than the {} that are fitted at once: {}",
                               sorted.size(), most, what);
  return condensed;
}

}  // namespace fathom::fits
