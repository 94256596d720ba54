#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/counts.h"
#include "data/token_set.h"
#include "engine/ref/ref_executor.h"
#include "lab/frame/options.h"
#include "lab/trained/loss_grid.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"
#include "model/transformer.h"
#include "model/units.h"
#include "train/weights.h"

namespace fathom::lab {
namespace {

/// What is pulled to zero. Strengths are multiples of lambda, the strength on a row under l2,1. A
/// head has 64 times as many weights as a row, but once at zero stays there; the mass that linf,1
/// takes off is that of a sum.
struct PenaltyArm {
  const char* name;
  engine::ProxKind kind;
  double rows, heads;
};
constexpr PenaltyArm kPenaltyArms[] = {{"l2,1", engine::ProxKind::l21, 1, 4},
                                       {"linf,1", engine::ProxKind::linf1, 10, 300}};
constexpr std::int64_t kNoPenalty = -1;  // place of the unregularised runs among the arms
constexpr double kToleratedLoss = 0.01;

struct SizingGrid {
  std::size_t arms;
  std::vector<double> strengths;  // lambda
  int layers, width, train_tokens, batch, steps, eval_every, eval_tokens;
};

SizingGrid sizing_grid(const Setup& setup) {
  if (setup.quick) return {1, {2}, 2, 32, 65'536, 16, 400, 50, 20'000};
  return {std::size(kPenaltyArms), {0.5, 1, 2, 4}, 6, 128, 512'000, 64, 2500, 100, 100'000};
}

train::RunSpec sizing_spec(const Setup& setup, const SizingGrid& grid, std::size_t seed) {
  return lab_run_spec(
      setup,
      fmt::format("[data]\ntokens = \"sotu\"\neval_tokens = {}\ntrain_tokens = {}\n"
                  "[model]\nlayers = {}\nwidth = {}\nheads = {}\ncontext = 128\n"
                  "activation = \"gelu_tanh\"\ninit_std = 0.03\ndropout = 0.1\n"
                  "[train]\nsteps = {}\nbatch = {}\nlearning_rate = 0.002\n"
                  "schedule = \"constant\"\nwarmup = 50\nseed = {}\neval_every = {}\n"
                  "patience = 4\nkeep_best = true\ncheckpoint_every = {}\n",
                  grid.eval_tokens, grid.train_tokens, grid.layers, grid.width, grid.width / 16,
                  grid.steps, grid.batch, seed, grid.eval_every, grid.steps / 2));
}

std::vector<train::RunSpec> sizing_specs(const Setup& setup) {
  const SizingGrid grid = sizing_grid(setup);
  std::vector<train::RunSpec> specs;
  for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
    specs.push_back(sizing_spec(setup, grid, seed));
    for (std::size_t arm = 0; arm < grid.arms; ++arm) {
      for (const double strength : grid.strengths) {
        train::RunSpec spec = sizing_spec(setup, grid, seed);
        spec.optimiser.prox = kPenaltyArms[arm].kind;
        spec.optimiser.prox_rows = strength * kPenaltyArms[arm].rows;
        spec.optimiser.prox_heads = strength * kPenaltyArms[arm].heads;
        specs.push_back(std::move(spec));
      }
    }
  }
  return specs;
}

/// Logits of a window in double precision, so that float rounding cannot hide a difference.
std::vector<double> exact_logits(const model::ModelSpec& spec, const model::ParameterValues& values,
                                 const std::vector<std::int32_t>& tokens) {
  model::BuildOptions options;
  options.purpose = model::Purpose::logits;
  const auto model = build_transformer(spec, options);
  engine::RefExecutor executor(model->plan);
  for (const model::Parameter& parameter : model->parameters) {
    executor.write(parameter.id, values.at(parameter.name));
  }
  executor.run(engine::Program::refresh, {});
  executor.write_tokens(model->tokens, tokens);
  executor.run(engine::Program::evaluate, {});
  const double* logits = executor.data(model->logits);
  return {logits, logits + model->rows() * spec.vocab};
}

/// Adds how much is left of the run's model and how far the compacted model's logits are from its.
void read_sizes(const Setup& setup, const std::filesystem::path& run, Json& result) {
  const train::Weights weights = train::load_weights(run);
  const model::CompactedModel compacted = compact(weights.spec, weights.parameters);
  std::int64_t left = 0;
  for (const auto& [name, values] : compacted.parameters) left += std::ssize(values);
  const data::TokenSet tokens(setup.folder / "tokens");
  std::vector<data::TokenId> window(as_size(weights.spec.context));
  tokens.file(data::Split::valid).copy(0, window);
  const std::vector<std::int32_t> ids(window.begin(), window.end());
  const auto masked = exact_logits(weights.spec, weights.parameters, ids);
  const auto small = exact_logits(compacted.spec, compacted.parameters, ids);
  double difference = 0;
  for (std::size_t i = 0; i < masked.size(); ++i) {
    difference = std::max(difference, std::abs(masked[i] - small[i]));
  }
  result["left"] = left;
  result["difference"] = difference;
  result["units"] = Json::array();
  for (const model::UnitCount& count : compacted.counts) {
    result["units"].push_back(
        {{"heads", count.kind == model::UnitKind::head}, {"all", count.all}, {"idle", count.idle}});
  }
}

std::int64_t penalty_of(const TrainedRun& run) {
  for (std::size_t arm = 0; arm < std::size(kPenaltyArms); ++arm) {
    if (run.spec.optimiser.prox == kPenaltyArms[arm].kind) return as_signed(arm);
  }
  return kNoPenalty;
}

std::int64_t strength_place(const SizingGrid& grid, const TrainedRun& run) {
  const std::int64_t arm = penalty_of(run);
  if (arm == kNoPenalty) return 0;
  const double lambda = run.spec.optimiser.prox_rows / kPenaltyArms[arm].rows;
  return std::find(grid.strengths.begin(), grid.strengths.end(), lambda) - grid.strengths.begin();
}

/// Runs of one arm and strength, by seed.
std::vector<const TrainedRun*> cell_of(const SizingGrid& grid, const std::vector<TrainedRun>& runs,
                                       std::int64_t arm, std::int64_t strength) {
  std::vector<const TrainedRun*> cell;
  for (const TrainedRun& run : runs) {
    if (penalty_of(run) == arm && strength_place(grid, run) == strength) {
      cell.push_back(&run);
    }
  }
  return cell;
}

/// Units that remain, layer by layer, mean over the seeds: "7.3 8 8".
std::string left_by_layer(const std::vector<const TrainedRun*>& cell, bool heads) {
  std::string text;
  const Json& first = cell.front()->result.at("units");
  for (std::size_t k = 0; k < first.size(); ++k) {
    if (first[k].at("heads").get<bool>() != heads) continue;
    double left = 0;
    for (const TrainedRun* run : cell) {
      const Json& unit = run->result.at("units")[k];
      left += unit.at("all").get<double>() - unit.at("idle").get<double>();
    }
    left /= as_double(cell.size());
    text += (text.empty() ? "" : " ") + fmt::format("{:.{}f}", left, heads ? 1 : 0);
  }
  return text;
}

/// Feed-forwards without a neuron, summed over the seeds.
std::int64_t gone_feed_forwards(const std::vector<const TrainedRun*>& cell) {
  std::int64_t gone = 0;
  for (const TrainedRun* run : cell) {
    for (const Json& unit : run->result.at("units")) {
      gone += !unit.at("heads").get<bool>() && unit.at("all") == unit.at("idle") ? 1 : 0;
    }
  }
  return gone;
}

struct SizingGrids {
  LossGrid losses, removed;  // arms by strengths
};

void show_sizes_left(const SizingGrid& shapes, const SizingGrids& grids,
                     const std::vector<TrainedRun>& runs, Conclusion& conclusion) {
  ExhibitTable table{
      "Best held-out loss in nats per byte, mean over the seeds (least to most), and what is left "
      "at that moment: parameters taken out in percent, heads and neurons by layer, feed-forwards "
      "that are gone in all seeds together",
      {"penalty", "lambda", "loss", "taken out", "heads", "neurons", "gone"},
      {}};
  ExhibitChart chart{
      "Loss and size", "parameters taken out, percent", "nats per byte", false, false, {}};
  for (const std::int64_t arm : grids.losses.rows()) {
    ChartSeries series{arm == kNoPenalty ? "none" : kPenaltyArms[arm].name, {}};
    for (const std::int64_t strength : grids.losses.columns()) {
      if (!grids.losses.has(arm, strength)) continue;
      const auto cell = cell_of(shapes, runs, arm, strength);
      ChartDot dot = grids.losses.dot(arm, strength);
      const double removed = 100 * grids.removed.mean(arm, strength, grids.removed.seeds());
      table.rows.push_back(
          {series.name,
           arm == kNoPenalty ? "0" : fmt::format("{:g}", shapes.strengths[as_size(strength)]),
           fmt::format("{:.4f} ({:.4f} to {:.4f})", dot.y, *dot.low, *dot.high),
           fmt::format("{:.1f}", removed), left_by_layer(cell, true), left_by_layer(cell, false),
           std::to_string(gone_feed_forwards(cell))});
      dot.x = removed;
      series.dots.push_back(dot);
    }
    chart.series.push_back(std::move(series));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

/// The largest share removed at a loss of at most 0.01 above that without penalty.
double share_for_free(const SizingGrids& grids, std::span<const std::size_t> seeds) {
  const double limit = grids.losses.mean(kNoPenalty, 0, seeds) + kToleratedLoss;
  double share = 0;
  for (const std::int64_t arm : grids.losses.rows()) {
    for (const std::int64_t strength : grids.losses.columns()) {
      if (!grids.losses.has(arm, strength)) continue;
      if (!(grids.losses.mean(arm, strength, seeds) <= limit)) continue;  // or NaN
      share = std::max(share, grids.removed.mean(arm, strength, seeds));
    }
  }
  return share;
}

Conclusion conclude_sizing(const Setup& setup, const std::vector<Json>& results) {
  const SizingGrid shapes = sizing_grid(setup);
  std::vector<TrainedRun> runs = trained_runs(sizing_specs(setup), results);
  double difference = 0;
  for (TrainedRun& run : runs) {
    run.result["removed"] = 1 - run.number("left") / run.number("parameters");
    difference = std::max(difference, run.number("difference"));
  }
  const auto arm = penalty_of;
  const auto strength = [&](const TrainedRun& run) { return strength_place(shapes, run); };
  const SizingGrids grids{{runs, arm, strength, "best_loss"}, {runs, arm, strength, "removed"}};
  Conclusion conclusion;
  show_sizes_left(shapes, grids, runs, conclusion);
  conclusion.measures.push_back(setup.quick ? Measure{"removed", {}}
                                            : grids.losses.measure("removed", [&](auto seeds) {
                                                return share_for_free(grids, seeds);
                                              }));
  conclusion.measures.push_back({"compacted", difference});
  if (setup.quick) conclusion.notes.emplace_back("two layers of width 32 do not judge the sizes");
  conclusion.notes.emplace_back(
      "a step takes learning rate times strength off a group; strengths are lambda on rows and 4 "
      "lambda on heads under l2,1, 10 and 300 lambda under linf,1");
  conclusion.notes.push_back(training_note(setup, runs));
  return conclusion;
}

}  // namespace

Experiment auto_sizing_experiment() {
  return {"auto-sizing",
          {seeds_option(3, 1)},
          [](const Setup& setup) {
            return training_parts(setup, sizing_specs(setup), {"sizes v1", read_sizes});
          },
          conclude_sizing};
}

}  // namespace fathom::lab
