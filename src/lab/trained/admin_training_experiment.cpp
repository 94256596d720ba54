#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/counts.h"
#include "lab/frame/options.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {
namespace {

constexpr double kHighRate = 1e-3;
constexpr std::array kRates{3e-4, kHighRate};
constexpr int kDeep = 60;
/// A model within this of the loss of byte frequencies alone has learned next to nothing.
constexpr double kMargin = 0.15;

struct Method {
  const char* name;
  int layers;
  const char* keys;
};
constexpr std::array kMethods{
    Method{"default, 6 layers", 6, "norm = \"post\"\n"},
    Method{"default", kDeep, "norm = \"post\"\n"},
    Method{"ADMIN", kDeep, "norm = \"post\"\ndepth_scheme = \"admin\"\n"},
    Method{"DeepNorm", kDeep, "norm = \"post\"\ndepth_scheme = \"deepnorm\"\n"},
    Method{"pre-norm", kDeep, "norm = \"pre\"\n"}};

struct MethodRun {
  const Method* method;
  double rate;
  std::size_t seed;
};

std::vector<MethodRun> method_runs(const Setup& setup) {
  std::vector<MethodRun> runs;
  for (const Method& method : kMethods) {
    for (const double rate : kRates) {
      for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
        runs.push_back({&method, rate, seed});
      }
    }
  }
  return runs;
}

std::vector<train::RunSpec> admin_specs(const Setup& setup) {
  std::vector<train::RunSpec> specs;
  if (setup.quick) return specs;
  for (const MethodRun& run : method_runs(setup)) {
    specs.push_back(lab_run_spec(
        setup, fmt::format("[data]\ntokens = \"sotu\"\neval_tokens = 200000\n"
                           "[model]\nlayers = {}\nwidth = 128\nheads = 4\ncontext = 128\n{}"
                           "init_std = 0.08\n"  // Xavier's for square matrices
                           "[train]\nsteps = 1500\nbatch = 64\nlearning_rate = {}\nwarmup = 400\n"
                           "clip_norm = 0.0\nseed = {}\neval_every = 300\ncheckpoint_every = 750\n",
                           run.method->layers, run.method->keys, run.rate, run.seed)));
  }
  return specs;
}

bool failed(const TrainedRun& run) {
  return run.diverged() || !(run.loss() < run.number("unigram_loss") - kMargin);
}

struct Cell {
  double failures = 0, runs = 0, loss = 0;  // mean of those that trained
};

Conclusion conclude_admin_training(const Setup& setup, const std::vector<Json>& results) {
  if (setup.quick) {
    Conclusion nothing;
    nothing.measures = {{"default", {}}, {"admin", {}}, {"loss", {}}};
    nothing.notes = {
        "fewer than 60 layers would be another claim: there is no honest --quick form, and nothing "
        "was trained"};
    return nothing;
  }
  const auto labels = method_runs(setup);
  const auto runs = trained_runs(admin_specs(setup), results);
  std::map<std::pair<const Method*, double>, Cell> cells;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Cell& cell = cells[{labels[i].method, labels[i].rate}];
    ++cell.runs;
    if (failed(runs[i])) {
      ++cell.failures;
    } else {
      cell.loss += runs[i].loss();
    }
  }
  Conclusion conclusion;
  ExhibitTable table{"60 layers of width 128 on bytes: seeds that failed, mean loss of the others",
                     {"method", "rate 3e-4", "rate 1e-3"},
                     {}};
  ExhibitChart chart{"Loss of those that trained", "rate", "nats per byte", true, false, {}};
  for (const Method& method : kMethods) {
    std::vector<std::string> row{method.name};
    ChartSeries series{method.name, {}};
    for (const double rate : kRates) {
      Cell& cell = cells[{&method, rate}];
      cell.loss /= cell.runs - cell.failures;  // NaN where all failed
      row.push_back(
          fmt::format("{:g} of {:g} failed{}", cell.failures, cell.runs,
                      cell.failures < cell.runs ? fmt::format(", {:.4f}", cell.loss) : ""));
      if (std::isfinite(cell.loss)) series.dots.push_back({rate, cell.loss});
    }
    table.rows.push_back(std::move(row));
    chart.series.push_back(std::move(series));
  }
  const auto share = [&](std::size_t method) {
    const Cell& cell = cells[{&kMethods[method], kHighRate}];
    return cell.failures / cell.runs;
  };
  const double difference =
      cells[{&kMethods[2], kHighRate}].loss - cells[{&kMethods[0], kHighRate}].loss;
  conclusion.measures = {{"default", share(1)}, {"admin", share(2)}, {"loss", difference}};
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
  conclusion.notes = {fmt::format("failed: not a number, or a loss within {} nats of {:.3f}, what "
                                  "byte frequencies alone score",
                                  kMargin, runs.front().number("unigram_loss")),
                      "ADMIN is its closed form; stability at 1,500 steps says nothing about the "
                      "quality of a long training",
                      training_note(setup, runs)};
  return conclusion;
}

}  // namespace

Experiment admin_training_experiment() {
  return {"admin-trained",
          {seeds_option(3, 3)},
          [](const Setup& setup) { return training_parts(setup, admin_specs(setup)); },
          conclude_admin_training};
}

}  // namespace fathom::lab
