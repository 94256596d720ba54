#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "lab/frame/options.h"
#include "lab/trained/grid_exhibit.h"
#include "lab/trained/loss_grid.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {
namespace {

struct WeightKind {
  const char* name;
  const char* keys;  // of [model]
};
/// Softmax first. Raw scores need a rescaling to train: an RMS norm of the heads' outputs at
/// each token, in every layer, before the output projection.
constexpr WeightKind kWeightKinds[] = {
    {"softmax", "attention = \"softmax\"\n"},
    {"normalised (NAP)", "attention = \"normalised\"\n"},
    {"raw, rescaled", "attention = \"none\"\nattention_norm = true\n"},
    {"linear", "attention = \"linear\"\n"}};
constexpr std::int64_t kSoftmax = 0;
constexpr std::int64_t kNormalised = 1;
constexpr std::int64_t kRaw = 2;
constexpr double kTaskSolved = 0.95;

struct FreeGrid {
  int symbols, context;  // of the case task
  std::vector<double> rates;
  int width, batch, steps;
  std::vector<std::int64_t> depths;  // of the language models
};

FreeGrid free_grid(const Setup& setup) {
  if (setup.quick) return {16, 17, {0.001, 0.003}, 32, 32, 1600, {}};
  return {100, 128, {0.0001, 0.0003, 0.001, 0.003}, 128, 32, 3200, {1, 2, 4}};
}

/// Two layers that see all letters, as published.
void add_cases(const Setup& setup, const FreeGrid& grid, std::vector<train::RunSpec>& specs) {
  for (const WeightKind& kind : kWeightKinds) {
    for (const double rate : grid.rates) {
      for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
        specs.push_back(lab_run_spec(
            setup,
            fmt::format("[data]\ntask = \"cases\"\nsymbols = {}\neval_tokens = {}\n"
                        "[model]\nlayers = 2\nwidth = {}\nheads = 4\ncontext = {}\n"
                        "mask = \"bidirectional\"\ntied = false\ninit_std = 0.03\n{}"
                        "[train]\nsteps = {}\nbatch = {}\nlearning_rate = {}\n"
                        "warmup = {}\nfloor = 0.0\nweight_decay = 0.01\nseed = {}\n"
                        "checkpoint_every = {}\n",
                        grid.symbols, 2000 * grid.context, grid.width, grid.context, kind.keys,
                        grid.steps, grid.batch, rate, grid.steps / 20, seed, grid.steps / 2)));
      }
    }
  }
}

void add_languages(const Setup& setup, const FreeGrid& grid, std::vector<train::RunSpec>& specs) {
  for (const std::int64_t layers : grid.depths) {
    for (const WeightKind& kind : kWeightKinds) {
      for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
        specs.push_back(lab_run_spec(
            setup, fmt::format("[data]\ntokens = \"sotu\"\neval_tokens = 200000\n"
                               "[model]\nlayers = {}\nwidth = 128\nheads = 8\ncontext = 128\n"
                               "init_std = 0.03\n{}"
                               "[train]\nsteps = 1500\nbatch = 32\nlearning_rate = 0.002\n"
                               "warmup = 100\nfloor = 0.0\nseed = {}\ncheckpoint_every = 750\n",
                               layers, kind.keys, seed)));
      }
    }
  }
}

std::vector<train::RunSpec> free_specs(const Setup& setup) {
  const FreeGrid grid = free_grid(setup);
  std::vector<train::RunSpec> specs;
  add_cases(setup, grid, specs);
  add_languages(setup, grid, specs);
  return specs;
}

std::int64_t kind_of(const TrainedRun& run) {
  switch (run.spec.model.attention) {
    case engine::AttentionKind::normalised:
      return kNormalised;
    case engine::AttentionKind::none:
      return kRaw;
    case engine::AttentionKind::linear:
      return 3;
    default:
      return kSoftmax;
  }
}

std::int64_t rate_place(const FreeGrid& grid, const TrainedRun& run) {
  const auto& rates = grid.rates;
  return std::find(rates.begin(), rates.end(), run.spec.learning_rate) - rates.begin();
}

/// Accuracies in the case task, kinds of weights by rates. A run that diverged scores 0.
LossGrid case_accuracies(const FreeGrid& grid, std::vector<TrainedRun> runs) {
  std::erase_if(runs, [](const TrainedRun& run) { return !run.spec.has_task(); });
  for (TrainedRun& run : runs) {
    if (!run.diverged()) continue;
    run.result["status"] = "finished";
    run.result["accuracy"] = 0;
  }
  return {runs, kind_of, [&](const TrainedRun& run) { return rate_place(grid, run); }, "accuracy"};
}

double best_accuracy(const LossGrid& grid, std::int64_t kind, std::span<const std::size_t> seeds) {
  double best = 0;
  for (const std::int64_t rate : grid.columns()) {
    best = std::max(best, grid.mean(kind, rate, seeds));
  }
  return best;
}

/// The best kind without softmax, minus softmax, each at its best rate.
double free_lead(const LossGrid& grid, std::span<const std::size_t> seeds) {
  double best = 0;
  for (const std::int64_t kind : grid.rows()) {
    if (kind != kSoftmax) best = std::max(best, best_accuracy(grid, kind, seeds));
  }
  return best - best_accuracy(grid, kSoftmax, seeds);
}

double solving_rates(const LossGrid& grid, std::int64_t kind, std::span<const std::size_t> seeds) {
  return as_double(std::count_if(
      grid.columns().begin(), grid.columns().end(),
      [&](std::int64_t rate) { return grid.mean(kind, rate, seeds) >= kTaskSolved; }));
}

/// The number of rates at which normalised weights solve the task minus that of softmax; NaN where
/// neither does.
double rate_lead(const LossGrid& grid, std::span<const std::size_t> seeds) {
  const double normalised = solving_rates(grid, kNormalised, seeds);
  const double softmax = solving_rates(grid, kSoftmax, seeds);
  return normalised + softmax == 0 ? NAN : normalised - softmax;
}

void show_cases(const FreeGrid& shapes, const LossGrid& grid, const TrainedRun& any,
                Conclusion& conclusion) {
  GridLook look;
  look.title = fmt::format(
      "Case task: accuracy in percent, mean over the seeds (least to most); always the commonest "
      "answer scores {}",
      percent(any.number("majority")));
  look.corner = "weights";
  look.chart = "Case task: accuracy by learning rate";
  look.x_label = "learning rate";
  look.y_label = "accuracy";
  look.row_name = [](std::int64_t kind) { return kWeightKinds[kind].name; };
  look.x = [&](std::int64_t rate) { return shapes.rates[as_size(rate)]; };
  look.column_name = [&](std::int64_t rate) { return fmt::format("{:g}", look.x(rate)); };
  look.cell = percent_range;
  show_grid(grid, look, conclusion);
}

LossGrid language_losses(std::vector<TrainedRun> runs) {
  std::erase_if(runs, [](const TrainedRun& run) { return run.spec.has_task(); });
  return {runs, kind_of, [](const TrainedRun& run) { return run.layers(); }};
}

void show_language(const LossGrid& grid, Conclusion& conclusion) {
  ExhibitTable table{
      "Language model: held-out loss in nats per byte, mean over the seeds, and in brackets what "
      "it "
      "is above softmax",
      {"weights"},
      {}};
  ExhibitChart chart{
      "Loss above that of softmax, by depth", "layers", "nats per byte", true, false, {}};
  for (const std::int64_t layers : grid.columns()) {
    table.columns.push_back(fmt::format("{} layer{}", layers, layers == 1 ? "" : "s"));
  }
  for (const std::int64_t kind : grid.rows()) {
    std::vector<std::string> row{kWeightKinds[kind].name};
    ChartSeries series{kWeightKinds[kind].name, {}};
    for (const std::int64_t layers : grid.columns()) {
      ChartDot dot = grid.dot(kind, layers);
      const double softmax = grid.mean(kSoftmax, layers, grid.seeds());
      row.push_back(kind == kSoftmax ? fmt::format("{:.4f}", dot.y)
                                     : fmt::format("{:.4f} ({:+.4f})", dot.y, dot.y - softmax));
      series.dots.push_back({dot.x, dot.y - softmax, *dot.low - softmax, *dot.high - softmax});
    }
    table.rows.push_back(std::move(row));
    if (kind != kSoftmax) chart.series.push_back(std::move(series));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

/// Loss of the best kind without softmax minus that of softmax, largest over the depths.
double language_gap(const LossGrid& grid, std::span<const std::size_t> seeds) {
  double largest = -INFINITY;
  for (const std::int64_t layers : grid.columns()) {
    double best = INFINITY;
    for (const std::int64_t kind : grid.rows()) {
      if (kind != kSoftmax) best = std::min(best, grid.mean(kind, layers, seeds));
    }
    largest = std::max(largest, best - grid.mean(kSoftmax, layers, seeds));
  }
  return largest;
}

/// How much the gap of raw scores grows from the least depth to the greatest.
double gap_growth(const LossGrid& grid, std::span<const std::size_t> seeds) {
  const auto gap = [&](std::int64_t layers) {
    return grid.mean(kRaw, layers, seeds) - grid.mean(kSoftmax, layers, seeds);
  };
  return gap(grid.columns().back()) - gap(grid.columns().front());
}

Conclusion conclude_free(const Setup& setup, const std::vector<Json>& results) {
  const FreeGrid shapes = free_grid(setup);
  const auto runs = trained_runs(free_specs(setup), results);
  const LossGrid cases = case_accuracies(shapes, runs);
  Conclusion conclusion;
  show_cases(shapes, cases, runs.front(), conclusion);
  if (setup.quick) {
    conclusion.measures = {{"cases", {}}, {"rates", {}}, {"language", {}}, {"depth", {}}};
    conclusion.notes.emplace_back("16 letters and one seed do not judge the claim");
  } else {
    const LossGrid language = language_losses(runs);
    show_language(language, conclusion);
    conclusion.measures = {
        cases.measure("cases", [&](auto seeds) { return free_lead(cases, seeds); }),
        cases.measure("rates", [&](auto seeds) { return rate_lead(cases, seeds); }),
        language.measure("language", [&](auto seeds) { return language_gap(language, seeds); }),
        language.measure("depth", [&](auto seeds) { return gap_growth(language, seeds); })};
  }
  conclusion.notes.emplace_back(
      "raw scores are those of eq. (3) of arXiv 2006.12467; they are rescaled by an RMS norm of "
      "what the heads give to a token, in every layer, before the output projection");
  conclusion.notes.push_back(training_note(setup, runs));
  return conclusion;
}

}  // namespace

Experiment softmax_free_experiment() {
  return {"softmax-free",
          {seeds_option(3, 1)},
          [](const Setup& setup) { return training_parts(setup, free_specs(setup)); },
          conclude_free};
}

}  // namespace fathom::lab
