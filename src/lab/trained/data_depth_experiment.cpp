#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/counts.h"
#include "core/units.h"
#include "lab/frame/options.h"
#include "lab/trained/loss_grid.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {
namespace {

struct DepthShape {
  std::int64_t layers, width;
};

struct DataGrid {
  std::vector<std::int64_t> amounts;
  std::vector<DepthShape> fixed;  // one width
  std::vector<DepthShape> equal;  // one size; at the first and the last amount
  std::vector<double> rates;
  int batch, steps, eval_tokens;
};

DataGrid data_grid(const Setup& setup) {
  if (setup.quick)
    return {{16'384, 524'288}, {{1, 32}, {2, 32}, {4, 32}}, {}, {0.004}, 16, 800, 20000};
  return {{128'000, 512'000, 2'048'000, 8'192'000},
          {{1, 128}, {2, 128}, {3, 128}, {4, 128}, {6, 128}, {12, 128}},
          {{1, 320}, {2, 224}, {3, 176}, {4, 160}, {12, 96}},
          {0.002, 0.004},
          64,
          4000,
          200000};
}

void add_runs(const Setup& setup, std::int64_t amount, const std::vector<DepthShape>& shapes,
              std::vector<train::RunSpec>& specs) {
  const DataGrid grid = data_grid(setup);
  for (const DepthShape& shape : shapes) {
    for (const double rate : grid.rates) {
      for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
        specs.push_back(lab_run_spec(
            setup,
            fmt::format("[data]\ntokens = \"sotu\"\neval_tokens = {}\ntrain_tokens = {}\n"
                        "[model]\nlayers = {}\nwidth = {}\nheads = {}\ncontext = 128\n"
                        "activation = \"gelu_tanh\"\nparametrisation = \"completep\"\n"
                        "base_width = 128\nbase_layers = 3\ninit_std = 0.04\ndropout = 0.1\n"
                        "[train]\nsteps = {}\nbatch = {}\nlearning_rate = {}\n"
                        "schedule = \"constant\"\nwarmup = 50\nseed = {}\neval_every = 50\n"
                        "patience = 6\ncheckpoint_every = {}\n",
                        grid.eval_tokens, amount, shape.layers, shape.width, shape.width / 16,
                        grid.steps, grid.batch, rate, seed, grid.steps / 2)));
      }
    }
  }
}

std::vector<train::RunSpec> data_specs(const Setup& setup) {
  const DataGrid grid = data_grid(setup);
  std::vector<train::RunSpec> specs;
  for (const std::int64_t amount : grid.amounts) add_runs(setup, amount, grid.fixed, specs);
  for (const std::int64_t amount : {grid.amounts.front(), grid.amounts.back()}) {
    add_runs(setup, amount, grid.equal, specs);
  }
  return specs;
}

/// Of every shape and amount only the runs at the rate with the lower mean.
std::vector<TrainedRun> at_best_rate(const std::vector<TrainedRun>& runs) {
  const auto cell_of = [](const TrainedRun& run) {
    return std::tuple{run.spec.train_tokens, run.layers(), run.spec.model.width};
  };
  std::map<decltype(cell_of(runs[0])), std::map<double, double>> sums;
  for (const TrainedRun& run : runs) {
    sums[cell_of(run)][run.spec.learning_rate] +=
        run.diverged() ? INFINITY : run.number("best_loss");
  }
  std::vector<TrainedRun> best;
  for (const TrainedRun& run : runs) {
    const auto& rates = sums.at(cell_of(run));
    const auto least = std::min_element(rates.begin(), rates.end(),
                                        [](auto& a, auto& b) { return a.second < b.second; });
    if (least->first == run.spec.learning_rate) best.push_back(run);
  }
  return best;
}

LossGrid amounts_by_depth(std::vector<TrainedRun> runs, const std::vector<DepthShape>& shapes) {
  std::erase_if(runs, [&](const TrainedRun& run) {
    return std::none_of(shapes.begin(), shapes.end(), [&](const DepthShape& shape) {
      return shape.layers == run.layers() && shape.width == run.spec.model.width;
    });
  });
  return {runs, [](const TrainedRun& run) { return run.spec.train_tokens; },
          [](const TrainedRun& run) { return run.layers(); }, "best_loss"};
}

double best_depth(const LossGrid& grid, std::int64_t amount, std::span<const std::size_t> seeds) {
  const LossCurve curve = grid.curve(amount, seeds);
  return std::min_element(curve.begin(), curve.end(),
                          [](const CurveDot& a, const CurveDot& b) { return a.loss < b.loss; })
      ->x;
}

double falls(const LossGrid& grid, std::span<const std::size_t> seeds) {
  double count = 0;
  for (std::size_t i = 1; i < grid.rows().size(); ++i) {
    const bool fell =
        best_depth(grid, grid.rows()[i], seeds) < best_depth(grid, grid.rows()[i - 1], seeds);
    count += fell ? 1 : 0;
  }
  return count;
}

double growth(const LossGrid& grid, std::span<const std::size_t> seeds) {
  return best_depth(grid, grid.rows().back(), seeds) - best_depth(grid, grid.rows().front(), seeds);
}

void show_grid(const LossGrid& grid, const std::string& title, Conclusion& conclusion) {
  ExhibitTable table{
      title + ": best held-out loss, nats per byte, mean over the seeds", {"training text"}, {}};
  ExhibitChart chart{title, "layers", "best held-out loss, nats per byte", true, false, {}};
  for (const std::int64_t layers : grid.columns()) {
    table.columns.push_back(fmt::format("{} layer{}", layers, layers == 1 ? "" : "s"));
  }
  table.columns.emplace_back("best depth");
  for (const std::int64_t amount : grid.rows()) {
    const std::string name = format_count(as_double(amount)) + " bytes";
    std::vector<std::string> row{name};
    ChartSeries series{name, {}};
    for (const std::int64_t layers : grid.columns()) {
      row.push_back(fmt::format("{:.4f}", grid.mean(amount, layers, grid.seeds())));
      series.dots.push_back(grid.dot(amount, layers));
    }
    row.push_back(fmt::format("{:g}", best_depth(grid, amount, grid.seeds())));
    table.rows.push_back(std::move(row));
    chart.series.push_back(std::move(series));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

Conclusion conclude_data(const Setup& setup, const std::vector<Json>& results) {
  const DataGrid shapes = data_grid(setup);
  const auto runs = trained_runs(data_specs(setup), results);
  const std::vector<TrainedRun> best = at_best_rate(runs);
  const LossGrid fixed = amounts_by_depth(best, shapes.fixed);
  Conclusion conclusion;
  show_grid(fixed, fmt::format("Width {}", shapes.fixed.front().width), conclusion);
  if (setup.quick) {
    conclusion.measures = {{"monotone", {}}, {"little", {}}, {"much", {}}, {"equal-size", {}}};
    conclusion.notes.emplace_back("two amounts and narrow networks do not judge the claim");
  } else {
    std::vector<TrainedRun> ends = best;  // the equal-size arm has the first and the last amount
    std::erase_if(ends, [&](const TrainedRun& run) {
      return run.spec.train_tokens != shapes.amounts.front() &&
             run.spec.train_tokens != shapes.amounts.back();
    });
    std::vector<DepthShape> equal_shapes = shapes.equal;
    equal_shapes.push_back({6, 128});
    const LossGrid equal = amounts_by_depth(ends, equal_shapes);
    show_grid(equal, "At the parameters of 6 x 128", conclusion);
    conclusion.measures = {
        fixed.measure("monotone", [&](auto seeds) { return falls(fixed, seeds); }),
        fixed.measure("little",
                      [&](auto seeds) { return best_depth(fixed, fixed.rows().front(), seeds); }),
        fixed.measure("much", [&](auto seeds) { return growth(fixed, seeds); }),
        equal.measure("equal-size", [&](auto seeds) { return growth(equal, seeds); })};
  }
  const auto stopped = std::count_if(runs.begin(), runs.end(), [](const TrainedRun& run) {
    return run.result.at("status") == "early_stopped";
  });
  conclusion.notes.push_back(
      fmt::format("{} of {} runs were stopped by their patience, the others by the number of steps",
                  stopped, runs.size()));
  conclusion.notes.push_back(training_note(setup, runs));
  return conclusion;
}

}  // namespace

Experiment data_depth_experiment() {
  return {"data-and-depth",
          {seeds_option(3, 1)},
          [](const Setup& setup) { return training_parts(setup, data_specs(setup)); },
          conclude_data};
}

}  // namespace fathom::lab
