#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/units.h"
#include "lab/frame/options.h"
#include "lab/trained/loss_grid.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"
#include "train/step_benchmark.h"

namespace fathom::lab {
namespace {

struct WideTask {
  data::TaskKind kind;
  const char* mask;  // "causal" where a later input gives the answer away
  int context, eval_examples, batch, steps;
};

struct WideShape {
  const char* name;
  int layers, heads, ffn;
};
// Their places in the list of shapes.
constexpr std::int64_t kDeepShape = 0;
constexpr std::int64_t kWideShape = 1;
constexpr std::int64_t kMatchedShape = 2;

/// How scores become weights: another mechanism is another row.
struct Mechanism {
  const char* name;
  const char* keys;  // of [model]
};

struct WideGrid {
  std::vector<WideTask> tasks;
  std::vector<WideShape> shapes;
  std::vector<Mechanism> mechanisms;
  int width;
};

/// As many heads of size 16 in every shape; the third has the parameters of the first.
WideGrid wide_grid(const Setup& setup) {
  const std::vector<Mechanism> softmax{{"softmax", ""}};
  if (setup.quick) {
    return {{{data::TaskKind::era, "bidirectional", 128, 400, 16, 300},
             {data::TaskKind::sort, "causal", 32, 200, 32, 500}},
            {{"4 layers", 4, 2, 128}, {"1 layer", 1, 8, 128}, {"1 layer, equal size", 1, 8, 512}},
            softmax,
            64};
  }
  return {{{data::TaskKind::listops, "bidirectional", 128, 4000, 128, 6000},
           {data::TaskKind::era, "bidirectional", 1024, 2000, 32, 3000},
           {data::TaskKind::same_speaker, "bidirectional", 1024, 2000, 32, 2000},
           {data::TaskKind::sort, "causal", 64, 2000, 128, 3000}},
          {{"8 layers of 4 heads", 8, 4, 256},
           {"1 layer of 32", 1, 32, 256},
           {"1 layer of 32, equal size", 1, 32, 2048},
           {"2 layers of 16", 2, 16, 256}},
          softmax,
          128};
}

std::string wide_toml(const WideGrid& grid, const WideTask& task, const WideShape& shape,
                      const Mechanism& mechanism, std::size_t seed) {
  return fmt::format(
      "[data]\ntask = \"{}\"\neval_tokens = {}\n"
      "[model]\nlayers = {}\nwidth = {}\nheads = {}\nhead_size = 16\nffn = {}\ncontext = {}\n"
      "mask = \"{}\"\ntied = false\ninit_std = 0.04\n{}"
      "[train]\nsteps = {}\nbatch = {}\nlearning_rate = 1e-3\nschedule = \"linear\"\nfloor = 0.0\n"
      "warmup = {}\nweight_decay = 0.01\nseed = {}\ncheckpoint_every = {}\n",
      name_of(task.kind), task.eval_examples * task.context, shape.layers, grid.width, shape.heads,
      shape.ffn, task.context, task.mask, mechanism.keys, task.steps, task.batch, task.steps / 10,
      seed, task.steps / 2);
}

std::vector<train::RunSpec> wide_specs(const Setup& setup) {
  const WideGrid grid = wide_grid(setup);
  std::vector<train::RunSpec> specs;
  for (const Mechanism& mechanism : grid.mechanisms) {
    for (const WideTask& task : grid.tasks) {
      for (const WideShape& shape : grid.shapes) {
        for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
          specs.push_back(lab_run_spec(setup, wide_toml(grid, task, shape, mechanism, seed)));
        }
      }
    }
  }
  return specs;
}

/// Forward pass of one sequence of the longest task on one thread of the processor.
std::vector<Part> latency_parts(const Setup& setup) {
  const WideGrid grid = wide_grid(setup);
  const WideTask& longest =
      *std::max_element(grid.tasks.begin(), grid.tasks.end(),
                        [](const WideTask& a, const WideTask& b) { return a.context < b.context; });
  Setup processor = setup;
  processor.device = {};
  std::vector<Part> parts;
  for (const Mechanism& mechanism : grid.mechanisms) {
    for (const WideShape& shape : grid.shapes) {
      const train::RunSpec spec =
          lab_run_spec(processor, wide_toml(grid, longest, shape, mechanism, 1));
      parts.push_back(
          {"latency " + training_key(spec), 1, [spec](const Ticker&) {
             model::BuildOptions options;
             options.batch = 1;
             const auto timing = train::time_forward(spec.model, options, spec.place(), 2);
             return Json{{"seconds", timing.best_seconds}, {"memory_bytes", timing.memory_bytes}};
           }});
    }
  }
  return parts;
}

std::vector<Part> wide_parts(const Setup& setup) {
  std::vector<Part> parts = training_parts(setup, wide_specs(setup));
  for (Part& part : latency_parts(setup)) parts.push_back(std::move(part));
  return parts;
}

/// Accuracies of one mechanism, tasks by shapes, each by its place in the grid.
LossGrid accuracies(const WideGrid& grid, std::span<const TrainedRun> runs) {
  const auto place = [](const auto& list, const auto& is_it) {
    return std::find_if(list.begin(), list.end(), is_it) - list.begin();
  };
  return {{runs.begin(), runs.end()},
          [&](const TrainedRun& run) {
            return place(grid.tasks,
                         [&](const WideTask& task) { return task.kind == run.spec.task.kind; });
          },
          [&](const TrainedRun& run) {
            return place(grid.shapes, [&](const WideShape& shape) {
              return shape.layers == run.layers() && shape.ffn == run.spec.model.ffn;
            });
          },
          "accuracy"};
}

ExhibitTable accuracy_table(const WideGrid& grid, const std::vector<LossGrid>& scores,
                            const std::vector<TrainedRun>& runs, std::size_t seeds) {
  ExhibitTable table{
      "Accuracy in percent, mean over the seeds (least to most), and what needs no "
      "reading: always the commonest answer, and the commonest for the first token",
      {"mechanism", "task"},
      {}};
  for (const WideShape& shape : grid.shapes) table.columns.emplace_back(shape.name);
  table.columns.insert(table.columns.end(), {"commonest", "by first token"});
  for (std::size_t mechanism = 0; mechanism < scores.size(); ++mechanism) {
    for (std::int64_t task = 0; task < std::ssize(grid.tasks); ++task) {
      std::vector<std::string> row{grid.mechanisms[mechanism].name,
                                   name_of(grid.tasks[as_size(task)].kind)};
      for (std::int64_t shape = 0; shape < std::ssize(grid.shapes); ++shape) {
        const ChartDot dot = scores[mechanism].dot(task, shape);
        row.push_back(
            fmt::format("{} ({} to {})", percent(dot.y), percent(*dot.low), percent(*dot.high)));
      }
      const TrainedRun& first =
          runs[((mechanism * grid.tasks.size()) + as_size(task)) * grid.shapes.size() * seeds];
      row.push_back(percent(first.number("majority")));
      row.push_back(percent(first.number("first_token")));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

ExhibitTable cost_table(const WideGrid& grid, const std::vector<TrainedRun>& runs,
                        std::span<const Json> latencies, std::size_t seeds) {
  ExhibitTable table{
      "Size and speed: parameters, and one forward pass of the longest sequence on "
      "one thread of the processor",
      {"mechanism", "shape", "parameters", "time", "memory"},
      {}};
  for (std::size_t i = 0; i < latencies.size(); ++i) {
    const std::size_t mechanism = i / grid.shapes.size();
    const std::size_t shape = i % grid.shapes.size();
    const TrainedRun& first =
        runs[(mechanism * grid.tasks.size() * grid.shapes.size() + shape) * seeds];
    table.rows.push_back({grid.mechanisms[mechanism].name, grid.shapes[shape].name,
                          format_count(first.number("parameters")),
                          format_seconds(latencies[i].at("seconds").get<double>()),
                          format_bytes(latencies[i].at("memory_bytes").get<double>())});
  }
  return table;
}

ExhibitChart accuracy_chart(const WideGrid& grid, const LossGrid& scores) {
  ExhibitChart chart{"Accuracy by depth at equal heads", "layers", "accuracy", true, false, {}};
  for (std::int64_t task = 0; task < std::ssize(grid.tasks); ++task) {
    ChartSeries series{name_of(grid.tasks[as_size(task)].kind), {}};
    for (std::int64_t shape = 0; shape < std::ssize(grid.shapes); ++shape) {
      if (shape == kMatchedShape) continue;
      ChartDot dot = scores.dot(task, shape);
      dot.x = grid.shapes[as_size(shape)].layers;
      series.dots.push_back(dot);
    }
    std::sort(series.dots.begin(), series.dots.end(),
              [](const ChartDot& a, const ChartDot& b) { return a.x < b.x; });
    chart.series.push_back(std::move(series));
  }
  return chart;
}

std::vector<Measure> wide_measures(const WideGrid& grid, const LossGrid& scores,
                                   std::span<const Json> latencies) {
  std::vector<Measure> measures;
  for (std::int64_t task = 0; task < std::ssize(grid.tasks); ++task) {
    measures.push_back(scores.measure(name_of(grid.tasks[as_size(task)].kind), [&](auto seeds) {
      return scores.mean(task, kWideShape, seeds) - scores.mean(task, kDeepShape, seeds);
    }));
  }
  measures.push_back(scores.measure("equal-size", [&](auto seeds) {
    double sum = 0;
    for (const std::int64_t task : scores.rows()) {
      sum += scores.mean(task, kMatchedShape, seeds) - scores.mean(task, kDeepShape, seeds);
    }
    return sum / as_double(scores.rows().size());
  }));
  measures.push_back({"latency", latencies[as_size(kDeepShape)].at("seconds").get<double>() /
                                     latencies[as_size(kWideShape)].at("seconds").get<double>()});
  return measures;
}

Conclusion conclude_wide(const Setup& setup, const std::vector<Json>& results) {
  const WideGrid grid = wide_grid(setup);
  const std::vector<train::RunSpec> specs = wide_specs(setup);
  const auto runs = trained_runs(specs, {results.begin(), results.begin() + std::ssize(specs)});
  const std::span<const Json> latencies = std::span(results).subspan(specs.size());
  std::vector<LossGrid> scores;
  const std::size_t each = runs.size() / grid.mechanisms.size();
  for (std::size_t i = 0; i < grid.mechanisms.size(); ++i) {
    scores.push_back(accuracies(grid, std::span(runs).subspan(i * each, each)));
  }
  Conclusion conclusion;
  conclusion.tables = {accuracy_table(grid, scores, runs, setup.size("seeds")),
                       cost_table(grid, runs, latencies, setup.size("seeds"))};
  conclusion.charts.push_back(accuracy_chart(grid, scores.front()));
  if (setup.quick) {
    conclusion.measures = {{"listops", {}}, {"era", {}},        {"same-speaker", {}},
                           {"sort", {}},    {"equal-size", {}}, {"latency", {}}};
    conclusion.notes.emplace_back("--quick trains narrower networks on two tasks and judges none");
  } else {
    conclusion.measures = wide_measures(grid, scores.front(), latencies);
  }
  conclusion.notes.emplace_back(
      "held-out passages come from speeches that training does not read; years in the text are "
      "among what a model may use");
  conclusion.notes.push_back(training_note(setup, runs));
  return conclusion;
}

}  // namespace

Experiment wide_deep_experiment() {
  return {"wide-against-deep", {seeds_option(3, 1)}, wide_parts, conclude_wide};
}

}  // namespace fathom::lab
