#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/counts.h"
#include "core/units.h"
#include "data/tokenizer.h"
#include "lab/frame/options.h"
#include "lab/trained/best_rate.h"
#include "lab/trained/loss_grid.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"
#include "model/transformer.h"
#include "train/step_cost.h"

namespace fathom::lab {
namespace {

/// What a stream and its layers look like, in units of the base: `layers` of width d.
struct StreamArm {
  const char* name;
  std::int64_t width;      // of the stream, over d
  bool sliced;             // layers of width d on it; else as wide as the stream,
  std::int64_t shallower;  // and fewer by this factor
};
constexpr StreamArm kStreamArms[] = {{"D = d", 1, false, 1},
                                     {"D = 2d, slices", 2, true, 1},
                                     {"D = 4d, slices", 4, true, 1},
                                     {"D = 2d, a quarter of the layers", 2, false, 4},
                                     {"D = 4d, a sixteenth of the layers", 4, false, 16}};
constexpr std::int64_t kPlainArm = 0;
constexpr std::int64_t kDoubleArm = 1;
constexpr std::int64_t kQuadrupleArm = 2;
constexpr std::int64_t kDoubleControl = 3;
constexpr std::int64_t kQuadrupleControl = 4;

struct StreamGrid {
  std::vector<std::int64_t> widths;  // d
  std::int64_t layers;
  std::vector<double> rates;
  int context, batch, steps, eval_tokens;
};

StreamGrid stream_grid(const Setup& setup) {
  if (setup.quick) return {{32}, 4, {0.004}, 64, 16, 400, 20'000};
  return {{64, 128}, 16, {0.001, 0.002, 0.004}, 128, 64, 2000, 400'000};
}

/// FLOPs of a training step: every GEMM, including the head's; embedding lookups and the cutting
/// and adding of slices have none.
double step_flops(train::RunSpec spec) {
  spec.model.vocab = as_signed(data::make_byte_tokenizer()->vocabulary());
  model::BuildOptions options;
  options.batch = spec.batch;
  return train::training_flops(model::build_transformer(spec.model, options)->plan);
}

/// The feed-forward width, a multiple of 8, at which a step costs `flops`; FLOPs are linear in it.
std::int64_t ffn_for(train::RunSpec spec, double flops) {
  constexpr std::int64_t kUnit = 8;
  const auto cost = [&](std::int64_t ffn) {
    spec.model.ffn = ffn;
    return step_flops(spec);
  };
  const double none = 2 * cost(kUnit) - cost(2 * kUnit);
  const double unit = cost(kUnit) - none;
  return kUnit * std::max<std::int64_t>(1, std::llround((flops - none) / unit));
}

train::RunSpec stream_spec(const Setup& setup, const StreamGrid& grid, std::int64_t base,
                           const StreamArm& arm) {
  const std::int64_t width = arm.width * base;
  const std::int64_t layer_width = arm.sliced ? base : width;
  return lab_run_spec(
      setup, fmt::format("[data]\ntokens = \"sotu\"\neval_tokens = {}\n"
                         "[model]\nlayers = {}\nwidth = {}\nheads = {}\ncontext = {}\nffn = {}\n"
                         "slice = {}\nactivation = \"gelu_tanh\"\ninit_std = 0.03\n"
                         "[train]\nsteps = {}\nbatch = {}\nwarmup = {}\nfloor = 0.0\n"
                         "checkpoint_every = {}\n",
                         grid.eval_tokens, grid.layers / arm.shallower, width, layer_width / 16,
                         grid.context, 4 * layer_width, arm.sliced ? base : 0, grid.steps,
                         grid.batch, grid.steps / 20, grid.steps / 2));
}

std::vector<train::RunSpec> stream_specs(const Setup& setup) {
  const StreamGrid grid = stream_grid(setup);
  std::vector<train::RunSpec> specs;
  for (const std::int64_t base : grid.widths) {
    const double flops = step_flops(stream_spec(setup, grid, base, kStreamArms[kPlainArm]));
    for (const StreamArm& arm : kStreamArms) {
      if (arm.shallower > grid.layers) continue;
      train::RunSpec spec = stream_spec(setup, grid, base, arm);
      spec.model.ffn = ffn_for(spec, flops);
      for (const double rate : grid.rates) {
        spec.learning_rate = rate;
        for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
          spec.seed = seed;
          specs.push_back(spec);
        }
      }
    }
  }
  return specs;
}

std::int64_t arm_of(const StreamGrid& grid, const TrainedRun& run) {
  const model::ModelSpec& model = run.spec.model;
  if (model.slice > 0) return model.width == 2 * model.slice ? kDoubleArm : kQuadrupleArm;
  if (model.layers == grid.layers) return kPlainArm;
  return model.layers == grid.layers / 4 ? kDoubleControl : kQuadrupleControl;
}

/// The base width of a run: what one of its layers reads, or a control's whole stream.
std::int64_t base_of(const StreamGrid& grid, const TrainedRun& run) {
  return run.spec.model.width / kStreamArms[arm_of(grid, run)].width;
}

void show_streams(const StreamGrid& shapes, const LossGrid& grid,
                  const std::vector<TrainedRun>& best, Conclusion& conclusion) {
  ExhibitTable table{
      "Held-out loss in nats per byte at the best rate, mean over the seeds (least to most)",
      {"d", "stream", "layers", "feed-forward", "parameters", "rate", "GFLOPs of a step", "loss"},
      {}};
  ExhibitChart chart{
      "Loss at equal FLOPs", "width of the stream", "nats per byte", true, false, {}};
  for (const std::int64_t base : grid.rows()) {
    ChartSeries sliced{fmt::format("layers of width {} on slices", base), {}};
    ChartSeries plain{fmt::format("plain, the FLOPs of {} layers of {}", shapes.layers, base), {}};
    for (const std::int64_t arm : grid.columns()) {
      const auto run = std::find_if(best.begin(), best.end(), [&](const TrainedRun& each) {
        return base_of(shapes, each) == base && arm_of(shapes, each) == arm;
      });
      ChartDot dot = grid.dot(base, arm);
      table.rows.push_back({std::to_string(base), kStreamArms[arm].name,
                            std::to_string(run->layers()), std::to_string(run->spec.model.ffn),
                            format_count(run->number("parameters")),
                            fmt::format("{:g}", run->spec.learning_rate),
                            fmt::format("{:.3f}", step_flops(run->spec) / 1e9),
                            fmt::format("{:.4f} ({:.4f} to {:.4f})", dot.y, *dot.low, *dot.high)});
      dot.x = as_double(run->spec.model.width);
      if (arm <= kQuadrupleArm) sliced.dots.push_back(dot);
      if (arm == kPlainArm || arm > kQuadrupleArm) plain.dots.push_back(dot);
    }
    chart.series.push_back(std::move(sliced));
    chart.series.push_back(std::move(plain));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

/// How much lower the loss of `better` is than that of `worse`, smallest over the base widths.
double least_stream_gain(const LossGrid& grid, std::int64_t worse, std::int64_t better,
                         std::span<const std::size_t> seeds) {
  double least = INFINITY;
  for (const std::int64_t base : grid.rows()) {
    least = std::min(least, grid.mean(base, worse, seeds) - grid.mean(base, better, seeds));
  }
  return least;
}

Conclusion conclude_streams(const Setup& setup, const std::vector<Json>& results) {
  const StreamGrid shapes = stream_grid(setup);
  const auto runs = trained_runs(stream_specs(setup), results);
  const std::vector<TrainedRun> best = at_best_rate(runs, [&](const TrainedRun& run) {
    return std::tuple{base_of(shapes, run), arm_of(shapes, run)};
  });
  const LossGrid grid(
      best, [&](const TrainedRun& run) { return base_of(shapes, run); },
      [&](const TrainedRun& run) { return arm_of(shapes, run); });
  Conclusion conclusion;
  show_streams(shapes, grid, best, conclusion);
  if (setup.quick) {
    conclusion.measures = {{"double", {}}, {"quadruple", {}}, {"control", {}}};
    conclusion.notes.emplace_back("four layers of width 32 do not judge the claim");
  } else {
    conclusion.measures = {
        grid.measure(
            "double",
            [&](auto seeds) { return least_stream_gain(grid, kPlainArm, kDoubleArm, seeds); }),
        grid.measure(
            "quadruple",
            [&](auto seeds) { return least_stream_gain(grid, kDoubleArm, kQuadrupleArm, seeds); }),
        grid.measure("control", [&](auto seeds) {
          return std::min(least_stream_gain(grid, kDoubleControl, kDoubleArm, seeds),
                          least_stream_gain(grid, kQuadrupleControl, kQuadrupleArm, seeds));
        })};
  }
  conclusion.notes.emplace_back(
      "FLOPs are those of all GEMMs of a step, the head's too; the feed-forward, a multiple of 8, "
      "makes them equal. Looking up embeddings, cutting slices and adding them cost none");
  conclusion.notes.emplace_back("the exact side is docs/claims/partial-width.md");
  conclusion.notes.push_back(training_note(setup, runs));
  return conclusion;
}

}  // namespace

Experiment sliced_experiment() {
  return {"partial-width-trained",
          {seeds_option(3, 1)},
          [](const Setup& setup) { return training_parts(setup, stream_specs(setup)); },
          conclude_streams};
}

}  // namespace fathom::lab
