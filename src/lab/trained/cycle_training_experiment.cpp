#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/counts.h"
#include "lab/frame/options.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {
namespace {

constexpr double kTold = 0.95;  // accuracy
constexpr int kMostLayers = 5;

std::vector<train::RunSpec> cycle_specs(const Setup& setup) {
  const std::vector<int> sizes = setup.quick ? std::vector{8} : std::vector{8, 16, 32};
  const int depth = setup.quick ? 3 : kMostLayers;
  const int steps = setup.quick ? 2000 : 8000;
  std::vector<train::RunSpec> specs;
  for (const int n : sizes) {
    for (int layers = 1; layers <= depth; ++layers) {
      for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
        specs.push_back(lab_run_spec(
            setup,
            fmt::format(
                "[data]\ntask = \"cycles\"\nvertices = {0}\neval_tokens = {1}\n"
                "[model]\nlayers = {2}\nwidth = 32\nheads = 2\ncontext = {0}\n"
                "mask = \"bidirectional\"\npositions = \"none\"\ntied = false\ninit_std = 0.08\n"
                "[train]\nsteps = {3}\nbatch = 128\nlearning_rate = 2e-3\nwarmup = 400\n"
                "schedule = \"linear\"\nfloor = 0.0\nweight_decay = 0.01\nseed = {4}\n"
                "checkpoint_every = {5}\n",
                n, n * 2048, layers, steps, seed, steps / 2)));
      }
    }
  }
  return specs;
}

/// Best accuracy over the seeds, by size and depth.
std::map<std::int64_t, std::map<std::int64_t, ChartDot>> best_by_size(
    const std::vector<TrainedRun>& runs) {
  std::map<std::int64_t, std::map<std::int64_t, ChartDot>> best;
  for (const TrainedRun& run : runs) {
    const double accuracy = run.diverged() ? 0.5 : run.number("accuracy");
    const auto [found, fresh] = best[run.spec.task.vertices].try_emplace(
        run.layers(), ChartDot{as_double(run.layers()), accuracy, accuracy, accuracy});
    ChartDot& dot = found->second;
    dot.y = *(dot.high = std::max(*dot.high, accuracy));
    dot.low = std::min(*dot.low, accuracy);
  }
  return best;
}

Conclusion conclude_cycles(const Setup& setup, const std::vector<Json>& results) {
  const auto runs = trained_runs(cycle_specs(setup), results);
  Conclusion conclusion;
  ExhibitTable table{"Accuracy in percent, best of the seeds (worst)", {"vertices"}, {}};
  ExhibitChart chart{"Telling one cycle from two", "layers", "accuracy", false, false, {}};
  double reached = 0;
  double falls = 0;
  std::int64_t before = 0;
  for (const auto& [n, depths] : best_by_size(runs)) {
    std::vector<std::string> row{std::to_string(n)};
    ChartSeries series{fmt::format("n = {}", n), {}};
    std::int64_t least = kMostLayers + 1;
    for (const auto& [layers, dot] : depths) {
      row.push_back(fmt::format("{:.1f} ({:.1f})", 100 * dot.y, 100 * *dot.low));
      series.dots.push_back(dot);
      if (dot.y >= kTold) least = std::min(least, layers);
    }
    reached += least <= kMostLayers ? 1 : 0;
    falls += least < before ? 1 : 0;
    before = least;
    row.push_back(least > kMostLayers ? "none" : std::to_string(least));
    if (table.rows.empty()) {
      for (const auto& [layers, dot] : depths) {
        table.columns.push_back(fmt::format("{} layer{}", layers, layers == 1 ? "" : "s"));
      }
      table.columns.emplace_back("least depth");
    }
    table.rows.push_back(std::move(row));
    chart.series.push_back(std::move(series));
  }
  if (setup.quick) {
    conclusion.measures = {{"monotone", {}}, {"reached", {}}};
    conclusion.notes.emplace_back("one size says nothing about growth: --quick cannot judge this");
  } else {
    conclusion.measures = {{"monotone", falls}, {"reached", reached}};
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
  conclusion.notes.emplace_back("a guess is right in 50 %");
  conclusion.notes.push_back(training_note(setup, runs));
  return conclusion;
}

}  // namespace

Experiment cycle_training_experiment() {
  return {"connectivity-trained",
          {seeds_option(3, 1)},
          [](const Setup& setup) { return training_parts(setup, cycle_specs(setup)); },
          conclude_cycles};
}

}  // namespace fathom::lab
