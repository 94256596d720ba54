#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/counts.h"
#include "lab/frame/options.h"
#include "lab/frame/statistics.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {
namespace {

constexpr std::int64_t kMostHops = 16;
constexpr double kSolved = 0.05;  // error

/// The released error table at width 128, 4 heads, 2 to 6 layers (chsanford/hop-induction-heads);
/// dropout of 0.1 was active when it was made (docs/errata.md).
constexpr std::array kPublishedHops{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16};
constexpr double kPublishedErrors[][kPublishedHops.size()] = {
    {.010, .140, .346, .423, .543, .588, .616, .658, .692, .720, .737},
    {.003, .008, .048, .150, .277, .359, .422, .456, .574, .644, .706},
    {.001, .003, .005, .015, .034, .062, .109, .216, .359, .467, .612},
    {.001, .001, .001, .003, .012, .015, .017, .037, .103, .218, .414},
    {.000, .000, .001, .002, .003, .003, .007, .006, .010, .012, .062}};
/// Largest k with at most 5 % error in it; one layer, which was not trained, solves none.
const std::map<std::int64_t, std::int64_t> kPublishedLargest{{1, 0}, {2, 1}, {3, 3},
                                                             {4, 5}, {5, 8}, {6, 15}};

constexpr std::int64_t kSmallWidth = 32;

/// The published task and size, and its 317M tokens in larger batches.
train::RunSpec large_spec(const Setup& setup, int layers, std::size_t seed) {
  return lab_run_spec(
      setup,
      fmt::format("[data]\ntask = \"k-hop\"\neval_tokens = {}\n"
                  "[model]\nlayers = {}\nwidth = 128\nheads = 4\ncontext = 99\nvocab = 24\n"
                  "tied = false\n"
                  "[train]\nsteps = 12500\nbatch = 256\nlearning_rate = 5e-4\nwarmup = 1000\n"
                  "schedule = \"linear\"\nfloor = 0.0\nweight_decay = 0.01\nbeta2 = 0.999\n"
                  "seed = {}\neval_every = 1250\ncheckpoint_every = 6250\n",
                  99 * 6800, layers, seed));
}

train::RunSpec small_spec(const Setup& setup, int layers, std::size_t seed) {
  return lab_run_spec(
      setup, fmt::format("[data]\ntask = \"k-hop\"\nhops = [0, 1, 2, 4]\neval_tokens = {}\n"
                         "[model]\nlayers = {}\nwidth = {}\nheads = 2\ncontext = 33\nvocab = 16\n"
                         "tied = false\ninit_std = 0.08\n"
                         "[train]\nsteps = 5000\nbatch = 32\nlearning_rate = 2e-3\nwarmup = 200\n"
                         "schedule = \"linear\"\nfloor = 0.0\nweight_decay = 0.01\n"
                         "seed = {}\neval_every = 500\ncheckpoint_every = 2500\n",
                         33 * 1000, layers, kSmallWidth, seed));
}

std::vector<train::RunSpec> hop_specs(const Setup& setup) {
  std::vector<train::RunSpec> specs;
  for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
    for (const int layers : {1, 2, 3, 4}) specs.push_back(small_spec(setup, layers, seed));
    if (setup.quick) continue;
    for (const int layers : {2, 3, 4, 5}) specs.push_back(large_spec(setup, layers, seed));
  }
  return specs;
}

/// Runs by depth, one for each seed.
using ByDepth = std::map<std::int64_t, std::vector<const TrainedRun*>>;
using Units = std::span<const std::size_t>;

double mean_error(const std::vector<const TrainedRun*>& runs, Units seeds, std::int64_t hops) {
  double sum = 0;
  for (const std::size_t seed : seeds) sum += runs[seed]->group_error(hops);
  return sum / as_double(seeds.size());
}

std::int64_t largest_solved(const std::vector<const TrainedRun*>& runs, Units seeds) {
  std::int64_t solved = 0;
  while (solved < kMostHops && mean_error(runs, seeds, solved + 1) <= kSolved) ++solved;
  return solved;
}

double least_growth(const ByDepth& runs, Units seeds) {
  double least = INFINITY;
  for (auto depth = runs.begin(); std::next(depth) != runs.end(); ++depth) {
    const std::int64_t before = largest_solved(depth->second, seeds);
    const std::int64_t after = largest_solved(std::next(depth)->second, seeds);
    if (after == kMostHops) break;  // there is no larger k to solve
    least = std::min(least, as_double(after) / as_double(std::max<std::int64_t>(1, before)));
  }
  return least == INFINITY ? as_double(kMostHops) : least;
}

double depths_off_table(const ByDepth& runs, Units seeds) {
  int off = 0;
  for (const auto& [layers, each] : runs) {
    const std::int64_t solved = largest_solved(each, seeds);
    const bool fits =
        solved >= kPublishedLargest.at(layers - 1) && solved <= kPublishedLargest.at(layers + 1);
    off += fits ? 0 : 1;
  }
  return off;
}

double least_shallow_error(const ByDepth& runs, Units seeds) {
  double least = INFINITY;
  for (std::int64_t k = 8; k <= kMostHops; ++k) {
    least = std::min(least, mean_error(runs.at(2), seeds, k));
  }
  return least;
}

Measure measured(const std::string& criterion, const ByDepth& runs,
                 const std::function<double(const ByDepth&, Units)>& statistic) {
  const std::size_t seeds = runs.begin()->second.size();
  std::vector<std::size_t> all(seeds);
  for (std::size_t i = 0; i < seeds; ++i) all[i] = i;
  Measure measure{criterion, statistic(runs, all)};
  if (seeds > 1) {
    measure.interval =
        bootstrap_interval(seeds, [&](Units units) { return statistic(runs, units); });
  }
  return measure;
}

struct ErrorRange {
  double mean = 0, low = INFINITY, high = -INFINITY;
};

ErrorRange error_range(const std::vector<const TrainedRun*>& runs, std::int64_t hops) {
  ErrorRange range;
  for (const TrainedRun* run : runs) {
    const double error = run->group_error(hops);
    range.mean += error / as_double(runs.size());
    range.low = std::min(range.low, error);
    range.high = std::max(range.high, error);
  }
  return range;
}

std::string percent(double share) {
  return fmt::format("{:.1f}", 100 * share);
}

void show_large(const ByDepth& runs, Conclusion& conclusion) {
  ExhibitTable table{
      "Errors in percent by k, width 128, 4 heads: ours, mean of the seeds, above the "
      "published ones",
      {"layers"},
      {}};
  for (const int k : kPublishedHops) table.columns.push_back(std::to_string(k));
  table.columns.emplace_back("largest k");
  ExhibitChart chart{"Error by k and depth, width 128", "k", "error", false, false, {}};
  for (const auto& [layers, each] : runs) {
    std::vector<std::string> row{fmt::format("{} ours", layers)};
    std::vector<std::string> published{fmt::format("{} published", layers)};
    ChartSeries ours{fmt::format("{} layers", layers), {}};
    for (std::size_t i = 0; i < kPublishedHops.size(); ++i) {
      row.push_back(percent(error_range(each, kPublishedHops[i]).mean));
      published.push_back(percent(kPublishedErrors[layers - 2][i]));
    }
    for (std::int64_t k = 1; k <= kMostHops; ++k) {
      const ErrorRange range = error_range(each, k);
      ours.dots.push_back({as_double(k), range.mean, range.low, range.high});
    }
    std::vector<std::size_t> all(each.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    row.push_back(std::to_string(largest_solved(each, all)));
    published.push_back(std::to_string(kPublishedLargest.at(layers)));
    table.rows.push_back(std::move(row));
    table.rows.push_back(std::move(published));
    chart.series.push_back(std::move(ours));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

void show_small(const ByDepth& runs, Conclusion& conclusion) {
  ExhibitTable table{"In miniature: errors in percent by k, 32 characters, width 32, 2 heads",
                     {"layers", "0", "1", "2", "4"},
                     {}};
  ExhibitChart chart{"Error by depth in miniature", "layers", "error", false, false, {}};
  for (const std::int64_t k : {1, 2, 4}) chart.series.push_back({fmt::format("k = {}", k), {}});
  for (const auto& [layers, each] : runs) {
    std::vector<std::string> row{std::to_string(layers)};
    std::size_t series = 0;
    for (const std::int64_t k : {0, 1, 2, 4}) {
      const ErrorRange range = error_range(each, k);
      row.push_back(percent(range.mean));
      if (k == 0) continue;
      chart.series[series++].dots.push_back({as_double(layers), range.mean, range.low, range.high});
    }
    table.rows.push_back(std::move(row));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

Conclusion conclude_hops(const Setup& setup, const std::vector<Json>& results) {
  const auto runs = trained_runs(hop_specs(setup), results);
  ByDepth small, large;
  for (const TrainedRun& run : runs) {
    (run.spec.model.width == kSmallWidth ? small : large)[run.layers()].push_back(&run);
  }
  Conclusion conclusion;
  if (!large.empty()) {
    conclusion.measures = {measured("growth", large, least_growth),
                           measured("table", large, depths_off_table),
                           measured("shallow", large, least_shallow_error)};
    show_large(large, conclusion);
  } else {
    for (const char* id : {"growth", "table", "shallow"}) conclusion.measures.push_back({id, {}});
    conclusion.notes.emplace_back(
        "the published size has no honest form for a processor: --quick trains the miniature only");
  }
  const auto error_at = [](std::int64_t layers, std::int64_t k) {
    return [=](const ByDepth& each, Units seeds) { return mean_error(each.at(layers), seeds, k); };
  };
  conclusion.measures.push_back(measured("small-one", small, error_at(1, 1)));
  conclusion.measures.push_back(measured("small-two", small, error_at(2, 1)));
  conclusion.measures.push_back(measured("small-four", small, [](const ByDepth& each, Units seeds) {
    return mean_error(each.at(4), seeds, 4) / mean_error(each.at(2), seeds, 4);
  }));
  show_small(small, conclusion);
  conclusion.notes.emplace_back(
      "an error is a wrong answer at a position where all hops exist; a guess among the other "
      "three characters errs in about 70 %");
  conclusion.notes.push_back(training_note(setup, runs));
  return conclusion;
}

}  // namespace

Experiment hop_training_experiment() {
  return {"k-hop-trained",
          {seeds_option(3, 1)},
          [](const Setup& setup) { return training_parts(setup, hop_specs(setup)); },
          conclude_hops};
}

}  // namespace fathom::lab
