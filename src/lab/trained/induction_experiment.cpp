#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "lab/frame/options.h"
#include "lab/trained/task_heads.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {
namespace {

constexpr double kDropShare = 0.15;  // of the steps

/// One layer, two layers, and one layer with smeared keys, which also carry the preceding token.
struct InductionModel {
  const char* name;
  int layers;
  const char* keys;
};
constexpr InductionModel kInductionModels[] = {
    {"1 layer", 1, ""}, {"2 layers", 2, ""}, {"1 layer, smeared keys", 1, "keys = \"smeared\"\n"}};

std::vector<train::RunSpec> induction_specs(const Setup& setup) {
  const std::int64_t steps = setup.quick ? 5000 : 8000;
  std::vector<train::RunSpec> specs;
  for (const InductionModel& model : kInductionModels) {
    for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
      specs.push_back(lab_run_spec(
          setup, fmt::format("[data]\ntask = \"induction\"\neval_tokens = {}\n"
                             "[model]\nlayers = {}\nwidth = 64\nheads = 4\ncontext = 80\n"
                             "feed_forward = false\nvocab = 72\ninit_std = 0.06\n{}"
                             "[train]\nsteps = {}\nbatch = {}\nlearning_rate = 1e-3\nwarmup = 100\n"
                             "weight_decay = 0.01\nschedule = \"constant\"\nseed = {}\n"
                             "eval_every = {}\ncheckpoint_every = {}\n",
                             80 * 256, model.layers, model.keys, steps, setup.quick ? 32 : 64, seed,
                             steps / 50, steps / 4)));
    }
  }
  return specs;
}

/// The largest part of the fall in loss, first to last evaluation, within kDropShare of the steps.
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

/// Best scores of a run's heads; copying that of the head of layer `layer` that matches best.
struct HeadBests {
  double prefix = 0, previous = 0, copying = 0, copying_positive = 0;
};

HeadBests best_heads(const TrainedRun& run, std::int64_t layer) {
  HeadBests best;
  for (const Json& head : run.result.at("heads")) {
    if (head.at("layer") != layer) continue;
    best.previous = std::max(best.previous, head.at("previous").get<double>());
    if (head.at("prefix").get<double>() < best.prefix) continue;
    best.prefix = head.at("prefix").get<double>();
    best.copying = head.at("copying").get<double>();
    best.copying_positive = head.at("copying_positive").get<double>();
  }
  return best;
}

std::size_t model_of(const TrainedRun& run) {
  const bool smeared = run.spec.model.keys == model::KeySource::smeared;
  return smeared ? 2 : as_size(run.layers() - 1);
}

std::vector<Measure> induction_measures(const std::vector<TrainedRun>& runs) {
  double one = INFINITY, two = -INFINITY, smeared = -INFINITY, sudden = INFINITY;
  double one_prefix = 0, prefix = INFINITY, copying = INFINITY, previous = INFINITY;
  for (const TrainedRun& run : runs) {
    switch (model_of(run)) {
      case 0:
        one = std::min(one, run.loss());
        one_prefix = std::max(one_prefix, best_heads(run, 0).prefix);
        break;
      case 1: {
        two = std::max(two, run.loss());
        sudden = std::min(sudden, steepest_share(run.curve()));
        const HeadBests second = best_heads(run, 1);
        prefix = std::min(prefix, second.prefix);
        copying = std::min(copying, second.copying);
        previous = std::min(previous, best_heads(run, 0).previous);
        break;
      }
      default:
        smeared = std::max(smeared, run.loss());
    }
  }
  return {{"one-layer", one},     {"two-layers", two},       {"sudden", sudden},
          {"smeared", smeared},   {"prefix", prefix},        {"copying", copying},
          {"previous", previous}, {"one-prefix", one_prefix}};
}

/// The head of a layer with the largest score.
const Json& best_head(const TrainedRun& run, std::int64_t layer, const char* score) {
  const Json* best = nullptr;
  for (const Json& head : run.result.at("heads")) {
    if (head.at("layer") != layer) continue;
    if (best == nullptr || head.at(score).get<double>() > best->at(score).get<double>()) {
      best = &head;
    }
  }
  if (best == nullptr) throw InternalError(fmt::format("no head in layer {}", layer));
  return *best;
}

ExhibitTable head_table(const std::vector<TrainedRun>& runs) {
  ExhibitTable table{
      "Heads of a layer: largest prefix-matching and previous-token scores; how the "
      "head that matches best copies, directly and by eigenvalues; the distance "
      "back that gets most attention, and the place that does, counted from the "
      "token's earlier self",
      {"model", "seed", "layer", "prefix", "copying", "copying, eigenvalues", "previous token",
       "distance back", "place in the first copy"},
      {}};
  for (const TrainedRun& run : runs) {
    for (std::int64_t layer = 0; layer < run.layers(); ++layer) {
      const HeadBests best = best_heads(run, layer);
      const auto text = [](double score) { return fmt::format("{:.2f}", score); };
      const Json& back = best_head(run, layer, "back_attention");
      const Json& shift = best_head(run, layer, "shift_attention");
      table.rows.push_back({kInductionModels[model_of(run)].name, std::to_string(run.spec.seed),
                            std::to_string(layer + 1), text(best.prefix), text(best.copying),
                            text(best.copying_positive), text(best.previous),
                            fmt::format("{} ({:.2f})", back.at("back").get<int>(),
                                        back.at("back_attention").get<double>()),
                            fmt::format("+{} ({:.2f})", shift.at("shift").get<int>(),
                                        shift.at("shift_attention").get<double>())});
    }
  }
  return table;
}

Conclusion conclude_induction(const Setup& setup, const std::vector<Json>& results) {
  const auto runs = trained_runs(induction_specs(setup), results);
  Conclusion conclusion;
  ExhibitTable table{"Loss on the second copy",
                     {"model", "seed", "loss", "accuracy", "steepest 15 % of the steps"},
                     {}};
  ExhibitChart chart{"Loss on the second copy while training", "step", "nats", false, false, {}};
  for (const TrainedRun& run : runs) {
    const char* name = kInductionModels[model_of(run)].name;
    table.rows.push_back({name, std::to_string(run.spec.seed), fmt::format("{:.3f}", run.loss()),
                          fmt::format("{:.1f} %", 100 * run.number("accuracy")),
                          fmt::format("{:.0f} % of the fall", 100 * steepest_share(run.curve()))});
    ChartSeries series{fmt::format("{}, seed {}", name, run.spec.seed), {}};
    for (const auto& point : run.curve()) series.dots.push_back({point.step, point.loss});
    chart.series.push_back(std::move(series));
  }
  conclusion.measures = induction_measures(runs);
  conclusion.tables = {std::move(table), head_table(runs)};
  conclusion.charts.push_back(std::move(chart));
  conclusion.notes = {
      "ln 64 = 4.16 is a blind guess; one who knows the tokens of the block but not "
      "their order scores about 3.0 to 3.3",
      "definitions of the scores: src/lab/trained/task_heads.h, src/probe/head_copying.h; few "
      "tokens reach further back than 32, so larger distances say little",
      training_note(setup, runs)};
  return conclusion;
}

}  // namespace

Experiment induction_experiment() {
  return {"induction",
          {seeds_option(3, 1)},
          [](const Setup& setup) {
            return training_parts(setup, induction_specs(setup),
                                  {"induction heads v1", read_induction_heads});
          },
          conclude_induction};
}

}  // namespace fathom::lab
