#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/counts.h"
#include "core/units.h"
#include "lab/frame/options.h"
#include "lab/trained/best_rate.h"
#include "lab/trained/grid_exhibit.h"
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

/// For every shape and amount, only the runs at the rate with the lower mean.
std::vector<TrainedRun> best_of_rates(const std::vector<TrainedRun>& runs) {
  return at_best_rate(
      runs,
      [](const TrainedRun& run) {
        return std::tuple{run.spec.train_tokens, run.layers(), run.spec.model.width};
      },
      "best_loss");
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

void show_amounts(const LossGrid& grid, const std::string& title, Conclusion& conclusion) {
  GridLook look;
  look.title = title + ": best held-out loss, nats per byte, mean over the seeds";
  look.corner = "training text";
  look.chart = title;
  look.x_label = "layers";
  look.y_label = "best held-out loss, nats per byte";
  look.row_name = [](std::int64_t amount) { return format_count(as_double(amount)) + " bytes"; };
  look.column_name = [](std::int64_t layers) {
    return fmt::format("{} layer{}", layers, layers == 1 ? "" : "s");
  };
  look.cell = [](const ChartDot& dot) { return fmt::format("{:.4f}", dot.y); };
  show_grid(grid, look, conclusion);
  ExhibitTable& table = conclusion.tables.back();
  table.columns.emplace_back("best depth");
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    table.rows[i].push_back(fmt::format("{:g}", best_depth(grid, grid.rows()[i], grid.seeds())));
  }
}

Conclusion conclude_data(const Setup& setup, const std::vector<Json>& results) {
  const DataGrid shapes = data_grid(setup);
  const auto runs = trained_runs(data_specs(setup), results);
  const std::vector<TrainedRun> best = best_of_rates(runs);
  const LossGrid fixed = amounts_by_depth(best, shapes.fixed);
  Conclusion conclusion;
  show_amounts(fixed, fmt::format("Width {}", shapes.fixed.front().width), conclusion);
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
    show_amounts(equal, "At the parameters of 6 x 128", conclusion);
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
