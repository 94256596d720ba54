#include <fmt/format.h>

#include <algorithm>

#include "core/counts.h"
#include "lab/frame/options.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {
namespace {

constexpr double kDropShare = 0.15;  // of the steps

std::vector<train::RunSpec> induction_specs(const Setup& setup) {
  const std::int64_t steps = setup.quick ? 5000 : 8000;
  std::vector<train::RunSpec> specs;
  for (const int layers : {1, 2}) {
    for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
      specs.push_back(lab_run_spec(
          setup, fmt::format("[data]\ntask = \"induction\"\neval_tokens = {}\n"
                             "[model]\nlayers = {}\nwidth = 64\nheads = 4\ncontext = 80\n"
                             "feed_forward = false\nvocab = 72\ninit_std = 0.06\n"
                             "[train]\nsteps = {}\nbatch = {}\nlearning_rate = 1e-3\nwarmup = 100\n"
                             "weight_decay = 0.01\nschedule = \"constant\"\nseed = {}\n"
                             "eval_every = {}\ncheckpoint_every = {}\n",
                             80 * 256, layers, steps, setup.quick ? 32 : 64, seed, steps / 50,
                             steps / 4)));
    }
  }
  return specs;
}

/// The largest part of the loss's fall, first to last evaluation, within a share of the steps.
double steepest_share(const std::vector<TrainedRun::CurvePoint>& curve) {
  if (curve.size() < 3) return NAN;
  const double fall = curve.front().loss - curve.back().loss;
  const double window = kDropShare * curve.back().step;
  double most = 0;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    for (std::size_t j = i; j < curve.size() && curve[j].step - curve[i].step <= window; ++j) {
      most = std::max(most, curve[i].loss - curve[j].loss);
    }
  }
  return fall > 0 ? most / fall : 0;
}

Conclusion conclude_induction(const Setup& setup, const std::vector<Json>& results) {
  const auto runs = trained_runs(induction_specs(setup), results);
  Conclusion conclusion;
  ExhibitTable table{"Loss on the second copy",
                     {"layers", "seed", "loss", "accuracy", "steepest 15 % of the steps"},
                     {}};
  ExhibitChart chart{"Loss on the second copy while training", "step", "nats", false, false, {}};
  double one = INFINITY;
  double two = -INFINITY;
  double sudden = INFINITY;
  for (const TrainedRun& run : runs) {
    const double share = steepest_share(run.curve());
    if (run.layers() == 1) one = std::min(one, run.loss());
    if (run.layers() == 2) two = std::max(two, run.loss());
    if (run.layers() == 2) sudden = std::min(sudden, share);
    table.rows.push_back({std::to_string(run.layers()), std::to_string(run.spec.seed),
                          fmt::format("{:.3f}", run.loss()),
                          fmt::format("{:.1f} %", 100 * run.number("accuracy")),
                          fmt::format("{:.0f} % of the fall", 100 * share)});
    ChartSeries series{fmt::format("{} layer{}, seed {}", run.layers(),
                                   run.layers() == 1 ? "" : "s", run.spec.seed),
                       {}};
    for (const auto& point : run.curve()) series.dots.push_back({point.step, point.loss});
    chart.series.push_back(std::move(series));
  }
  conclusion.measures = {{"one-layer", one}, {"two-layers", two}, {"sudden", sudden}};
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
  conclusion.notes = {
      "ln 64 = 4.16 is a blind guess; one who knows the tokens of the block but not "
      "their order scores about 3.0 to 3.3",
      training_note(setup, runs)};
  return conclusion;
}

}  // namespace

Experiment induction_experiment() {
  return {"induction",
          {seeds_option(3, 1)},
          [](const Setup& setup) { return training_parts(setup, induction_specs(setup)); },
          conclude_induction};
}

}  // namespace fathom::lab
