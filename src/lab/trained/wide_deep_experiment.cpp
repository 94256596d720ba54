#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/units.h"
#include "lab/frame/options.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/wide_deep_grid.h"

namespace fathom::lab {
namespace {

using SeedSpan = std::span<const std::size_t>;

/// One grid with its runs, and the accuracies of every mechanism.
struct GridScores {
  WideGrid grid;
  std::vector<TrainedRun> runs;
  std::vector<LossGrid> scores;

  /// The first run of a mechanism and a task, which has the baselines of its examples.
  const TrainedRun& run_of(std::size_t mechanism, std::size_t task) const {
    const std::size_t seeds = scores.front().seeds().size();
    return runs[(mechanism * grid.tasks.size() + task) * grid.shapes.size() * seeds];
  }
  double gain(std::size_t mechanism, std::int64_t task, SeedSpan seeds) const {
    const LossGrid& each = scores[mechanism];
    return each.mean(task, kWideShape, seeds) - each.mean(task, kDeepShape, seeds);
  }
  /// Wide minus deep, mean over the tasks.
  double mean_gain(std::size_t mechanism, SeedSpan seeds) const {
    double sum = 0;
    for (std::int64_t task = 0; task < std::ssize(grid.tasks); ++task) {
      sum += gain(mechanism, task, seeds);
    }
    return sum / as_double(grid.tasks.size());
  }
};

std::vector<GridScores> read_grids(const Setup& setup, const std::vector<Json>& results) {
  std::vector<GridScores> read;
  auto next = results.begin();
  for (const WideGrid& grid : wide_grids(setup)) {
    const std::vector<train::RunSpec> specs = wide_specs(setup, grid);
    GridScores each{grid, trained_runs(specs, {next, next + std::ssize(specs)}), {}};
    next += std::ssize(specs);
    const std::size_t size = each.runs.size() / grid.mechanisms.size();
    for (std::size_t i = 0; i < grid.mechanisms.size(); ++i) {
      each.scores.push_back(wide_accuracies(grid, std::span(each.runs).subspan(i * size, size)));
    }
    read.push_back(std::move(each));
  }
  return read;
}

std::vector<Part> wide_parts(const Setup& setup) {
  std::vector<train::RunSpec> specs;
  for (const WideGrid& grid : wide_grids(setup)) {
    for (train::RunSpec& spec : wide_specs(setup, grid)) specs.push_back(std::move(spec));
  }
  std::vector<Part> parts = training_parts(setup, specs);
  parts.push_back(latency_part(setup));
  return parts;
}

ExhibitTable accuracy_table(const GridScores& each) {
  const WideGrid& grid = each.grid;
  ExhibitTable table{fmt::format("Accuracy in percent ({}), mean over the seeds (least to most), "
                                 "and what needs no reading: always the commonest answer, and the "
                                 "commonest for the first token",
                                 grid.name),
                     {"mechanism", "task"},
                     {}};
  for (const WideShape& shape : grid.shapes) table.columns.emplace_back(shape.name);
  table.columns.insert(table.columns.end(), {"commonest", "by first token"});
  for (std::size_t mechanism = 0; mechanism < grid.mechanisms.size(); ++mechanism) {
    for (std::size_t task = 0; task < grid.tasks.size(); ++task) {
      std::vector<std::string> row{grid.mechanisms[mechanism].name, name_of(grid.tasks[task].kind)};
      for (std::int64_t shape = 0; shape < std::ssize(grid.shapes); ++shape) {
        const ChartDot dot = each.scores[mechanism].dot(as_signed(task), shape);
        row.push_back(
            fmt::format("{} ({} to {})", percent(dot.y), percent(*dot.low), percent(*dot.high)));
      }
      row.push_back(percent(each.run_of(mechanism, task).number("majority")));
      row.push_back(percent(each.run_of(mechanism, task).number("first_token")));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

/// "-1.2 (-2.0 to -0.4)" in points.
std::string points(const Measure& measure) {
  if (!measure.value) return "-";
  std::string value = fmt::format("{:+.1f}", 100 * *measure.value);
  if (!measure.interval) return value;
  return fmt::format("{} ({:+.1f} to {:+.1f})", value, 100 * measure.interval->low,
                     100 * measure.interval->high);
}

ExhibitTable gain_table(const GridScores& each) {
  ExhibitTable table{
      "One layer less the deep shape by mechanism, points of accuracy (95 % interval)",
      {"mechanism"},
      {}};
  for (const WideTask& task : each.grid.tasks) table.columns.emplace_back(name_of(task.kind));
  table.columns.emplace_back("mean");
  for (std::size_t m = 0; m < each.grid.mechanisms.size(); ++m) {
    std::vector<std::string> row{each.grid.mechanisms[m].name};
    for (std::int64_t task = 0; task < std::ssize(each.grid.tasks); ++task) {
      row.push_back(points(
          each.scores[m].measure("", [&](SeedSpan seeds) { return each.gain(m, task, seeds); })));
    }
    row.push_back(points(
        each.scores[m].measure("", [&](SeedSpan seeds) { return each.mean_gain(m, seeds); })));
    table.rows.push_back(std::move(row));
  }
  return table;
}

ExhibitTable cost_table(const Setup& setup, const Json& timings) {
  const bool gpu = setup.device.kind == engine::DeviceKind::cuda;
  ExhibitTable table{
      fmt::format("Size and speed: parameters, and one forward pass over {} tokens on one thread "
                  "of the processor",
                  timed_models(setup).front().spec.model.context),
      {"mechanism", "shape", "parameters", "time", "memory"},
      {}};
  if (gpu) {
    table.columns.insert(table.columns.end(),
                         {"GPU, one sequence", "GPU, 32 sequences", "GPU memory, 32"});
  }
  const std::vector<TimedModel> models = timed_models(setup);
  for (std::size_t i = 0; i < models.size(); ++i) {
    const auto number = [&](const char* key) { return timings[i].at(key).get<double>(); };
    table.rows.push_back({models[i].mechanism, models[i].shape, format_count(number("parameters")),
                          format_seconds(number("seconds")), format_bytes(number("memory_bytes"))});
    if (!gpu) continue;
    std::vector<std::string>& row = table.rows.back();
    row.push_back(format_seconds(number("gpu_seconds")));
    row.push_back(format_seconds(number("gpu_batch_seconds")));
    row.push_back(format_bytes(number("gpu_batch_bytes")));
  }
  return table;
}

ExhibitChart depth_chart(const GridScores& each) {
  const WideGrid& grid = each.grid;
  ExhibitChart chart{
      "Accuracy by depth at equal heads, softmax", "layers", "accuracy", true, false, {}};
  for (std::int64_t task = 0; task < std::ssize(grid.tasks); ++task) {
    ChartSeries series{name_of(grid.tasks[as_size(task)].kind), {}};
    for (std::int64_t shape = 0; shape < std::ssize(grid.shapes); ++shape) {
      if (shape == kMatchedShape) continue;
      ChartDot dot = each.scores.front().dot(task, shape);
      dot.x = grid.shapes[as_size(shape)].layers;
      series.dots.push_back(dot);
    }
    std::sort(series.dots.begin(), series.dots.end(),
              [](const ChartDot& a, const ChartDot& b) { return a.x < b.x; });
    chart.series.push_back(std::move(series));
  }
  return chart;
}

/// Largest distance from the accuracy given by the root operator alone.
double farthest_from_root(const GridScores& each, SeedSpan seeds) {
  double farthest = 0;
  for (const std::int64_t shape : each.scores.front().columns()) {
    const double score = each.scores.front().mean(0, shape, seeds);
    farthest = std::max(farthest, std::abs(score - each.run_of(0, 0).number("first_token")));
  }
  return farthest;
}

std::vector<Measure> wide_measures(const std::vector<GridScores>& grids, const Json& timings) {
  const GridScores& softmax = grids[0];
  const GridScores& mechanisms = grids[1];
  const GridScores& lists = grids[2];
  const LossGrid& scores = softmax.scores.front();
  std::vector<Measure> measures;
  for (std::int64_t task = 0; task < std::ssize(softmax.grid.tasks); ++task) {
    measures.push_back(
        scores.measure(name_of(softmax.grid.tasks[as_size(task)].kind),
                       [&](SeedSpan seeds) { return softmax.gain(0, task, seeds); }));
  }
  measures.push_back(scores.measure("equal-size", [&](SeedSpan seeds) {
    double sum = 0;
    for (const std::int64_t task : scores.rows()) {
      sum += scores.mean(task, kMatchedShape, seeds) - scores.mean(task, kDeepShape, seeds);
    }
    return sum / as_double(scores.rows().size());
  }));
  measures.push_back(mechanisms.scores.front().measure("mechanisms", [&](SeedSpan seeds) {
    double sum = 0;
    for (std::size_t m = 0; m < mechanisms.scores.size(); ++m)
      sum += mechanisms.mean_gain(m, seeds);
    return sum / as_double(mechanisms.scores.size());
  }));
  measures.push_back(lists.scores.front().measure(
      "long-lists", [&](SeedSpan seeds) { return farthest_from_root(lists, seeds); }));
  measures.push_back({"latency", timings[as_size(kDeepShape)].at("seconds").get<double>() /
                                     timings[as_size(kWideShape)].at("seconds").get<double>()});
  return measures;
}

Conclusion conclude_wide(const Setup& setup, const std::vector<Json>& results) {
  const std::vector<GridScores> grids = read_grids(setup, results);
  Conclusion conclusion;
  std::vector<TrainedRun> runs;
  for (const GridScores& each : grids) {
    conclusion.tables.push_back(accuracy_table(each));
    if (each.grid.mechanisms.size() > 1) conclusion.tables.push_back(gain_table(each));
    runs.insert(runs.end(), each.runs.begin(), each.runs.end());
  }
  conclusion.tables.push_back(cost_table(setup, results.back()));
  conclusion.charts.push_back(depth_chart(grids.front()));
  if (setup.quick) {
    for (const char* id : {"listops", "era", "same-speaker", "sort", "equal-size", "mechanisms",
                           "long-lists", "latency"}) {
      conclusion.measures.push_back({id, {}});
    }
    conclusion.notes.emplace_back(
        "--quick trains narrower networks for a few hundred steps and judges nothing by them");
  } else {
    conclusion.measures = wide_measures(grids, results.back());
  }
  conclusion.notes.emplace_back(
      "the token that asks stands in front, where it is the global token of Longformer and "
      "BigBird; local blocks see nothing outside their own at any depth, as published");
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
