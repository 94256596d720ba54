#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/counts.h"
#include "lab/frame/options.h"
#include "lab/frame/statistics.h"
#include "lab/trained/loss_grid.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {
namespace {

struct RegimeGrid {
  std::vector<std::int64_t> widths, depths;
  int context, batch, steps, eval_tokens;
};

RegimeGrid regime_grid(const Setup& setup) {
  if (setup.quick) return {{32}, {1, 2, 3, 4, 6, 8}, 128, 16, 500, 50000};
  return {{32, 64, 128, 256}, {1, 2, 3, 4, 5, 6, 8, 12, 16}, 256, 64, 1500, 500000};
}

/// The settings of the law study (docs/results/law-h200), carried over to the length of these runs.
std::vector<train::RunSpec> regime_specs(const Setup& setup) {
  const RegimeGrid grid = regime_grid(setup);
  std::vector<train::RunSpec> specs;
  for (const std::int64_t width : grid.widths) {
    for (const std::int64_t layers : grid.depths) {
      for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
        specs.push_back(lab_run_spec(
            setup, fmt::format("[data]\ntokens = \"sotu\"\neval_tokens = {}\n"
                               "[model]\nlayers = {}\nwidth = {}\nheads = {}\ncontext = {}\n"
                               "activation = \"gelu_tanh\"\nparametrisation = \"completep\"\n"
                               "base_width = 128\nbase_layers = 3\ninit_std = 0.04\n"
                               "[train]\nsteps = {}\nbatch = {}\nlearning_rate = 0.006\n"
                               "schedule = \"wsd\"\ndecay = 0.2\nfloor = 0.0\nwarmup = {}\n"
                               "base_batch_tokens = 65536\nbase_total_tokens = 100000000\n"
                               "seed = {}\ncheckpoint_every = {}\n",
                               grid.eval_tokens, layers, width, width / 16, grid.context,
                               grid.steps, grid.batch, grid.steps / 25, seed, grid.steps / 2)));
      }
    }
  }
  return specs;
}

double threshold_of(double width) {
  return std::log(width) / std::log(3.0);
}

/// Gain per layer below the threshold divided by that beyond it.
double early_gain(const LossCurve& curve, double threshold) {
  const double below =
      (curve.front().loss - loss_at(curve, threshold)) / (threshold - curve.front().x);
  const double beyond =
      (loss_at(curve, threshold) - curve.back().loss) / (curve.back().x - threshold);
  constexpr double kMost = 1000;  // where more depth gains nothing
  return below / std::max(beyond, below / kMost);
}

/// Loss of one depth against 12 L d^2, the paper's size.
LossCurve by_size(const LossGrid& grid, std::int64_t layers, std::span<const std::size_t> seeds) {
  LossCurve curve;
  for (const std::int64_t width : grid.rows()) {
    const double size = 12 * as_double(layers) * as_double(width) * as_double(width);
    curve.push_back({std::log(size), grid.mean(width, layers, seeds)});
  }
  return curve;
}

/// Ratio of the size from which 8 layers beat 4 to that from which 4 beat 2; a lower bound where
/// one of them lies outside the grid, NaN where not even that is known.
double crossing_ratio(const LossGrid& grid, std::span<const std::size_t> seeds) {
  const LossCurve two = by_size(grid, 2, seeds);
  const LossCurve four = by_size(grid, 4, seeds);
  const LossCurve eight = by_size(grid, 8, seeds);
  const Crossing early = crossing_of(two, four);
  const Crossing late = crossing_of(four, eight);
  if (early.place == CrossingPlace::beyond || late.place == CrossingPlace::before) return NAN;
  return std::exp(late.x - early.x);
}

ExhibitTable regime_table(const LossGrid& grid) {
  ExhibitTable table{"Held-out loss in nats per byte, mean over the seeds", {"width"}, {}};
  for (const std::int64_t layers : grid.columns()) {
    table.columns.push_back(fmt::format("{} layer{}", layers, layers == 1 ? "" : "s"));
  }
  table.columns.insert(table.columns.end(), {"log3 of the width", "bend"});
  for (const std::int64_t width : grid.rows()) {
    std::vector<std::string> row{std::to_string(width)};
    for (const std::int64_t layers : grid.columns()) {
      row.push_back(fmt::format("{:.4f}", grid.mean(width, layers, grid.seeds())));
    }
    row.push_back(fmt::format("{:.2f}", threshold_of(as_double(width))));
    row.push_back(fmt::format("{:.2f}", bend_of(grid.curve(width, grid.seeds()))));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<ExhibitChart> regime_charts(const LossGrid& grid) {
  ExhibitChart depth{
      "Loss against depth at fixed width", "layers", "nats per byte", false, false, {}};
  for (const std::int64_t width : grid.rows()) {
    ChartSeries series{fmt::format("width {}", width), {}};
    for (const std::int64_t layers : grid.columns()) series.dots.push_back(grid.dot(width, layers));
    depth.series.push_back(std::move(series));
  }
  ExhibitChart size{"Loss against size 12 L d^2", "parameters", "nats per byte", true, false, {}};
  for (const std::int64_t layers : {2, 4, 8}) {
    ChartSeries series{fmt::format("{} layers", layers), {}};
    for (const CurveDot& dot : by_size(grid, layers, grid.seeds())) {
      series.dots.push_back({std::exp(dot.x), dot.loss});
    }
    size.series.push_back(std::move(series));
  }
  return {std::move(depth), std::move(size)};
}

Conclusion conclude_regimes(const Setup& setup, const std::vector<Json>& results) {
  const auto runs = trained_runs(regime_specs(setup), results);
  const LossGrid grid(
      runs, [](const TrainedRun& run) { return run.spec.model.width; },
      [](const TrainedRun& run) { return run.layers(); });
  const auto least = [&](std::span<const std::size_t> seeds, auto&& value) {
    double low = INFINITY;
    for (const std::int64_t width : grid.rows()) {
      low = std::min(low, value(grid.curve(width, seeds), threshold_of(as_double(width))));
    }
    return low;
  };
  Conclusion conclusion;
  conclusion.measures = {
      grid.measure("early", [&](auto seeds) { return least(seeds, early_gain); })};
  if (setup.quick) {
    conclusion.measures.insert(conclusion.measures.end(),
                               {{"threshold", {}}, {"moves", {}}, {"size", {}}});
    conclusion.notes.emplace_back(
        "--quick trains one width for a twentieth of the time: it cannot tell where the bend lies");
  } else {
    const auto distance = [&](auto seeds) {
      return -least(seeds, [](const LossCurve& curve, double threshold) {
        return -std::abs(bend_of(curve) - threshold);
      });
    };
    conclusion.measures.push_back(grid.measure("threshold", distance));
    conclusion.measures.push_back(grid.measure("moves", [&](auto seeds) {
      return bend_of(grid.curve(grid.rows().back(), seeds)) -
             bend_of(grid.curve(grid.rows().front(), seeds));
    }));
    conclusion.measures.push_back(
        grid.measure("size", [&](auto seeds) { return crossing_ratio(grid, seeds); }));
  }
  conclusion.tables.push_back(regime_table(grid));
  conclusion.charts = regime_charts(grid);
  if (setup.quick) conclusion.charts.pop_back();  // one width is no curve
  conclusion.notes.emplace_back(
      "the bend is where a line of two straight pieces fits loss against depth best; any curve of "
      "falling returns passes `early`, so `moves` is the test of the theory");
  conclusion.notes.push_back(training_note(setup, runs));
  return conclusion;
}

}  // namespace

Experiment two_regimes_experiment() {
  return {"two-regimes",
          {seeds_option(3, 1)},
          [](const Setup& setup) { return training_parts(setup, regime_specs(setup)); },
          conclude_regimes};
}

}  // namespace fathom::lab
