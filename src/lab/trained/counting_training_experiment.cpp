#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/counts.h"
#include "lab/frame/options.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {
namespace {

constexpr double kEnough = 0.95;  // of whole strings right
constexpr double kNotEnough = 0.80;
constexpr std::int64_t kMiniature = 32;  // width

struct HeatMap {
  int most_blocks, most_layers;
  std::int64_t width;
  int length, eval_length;  // most letters; the least are length / 2 + 1 and length + 1
  int steps;
};
constexpr HeatMap kFull{7, 5, 128, 100, 150, 4000};
constexpr HeatMap kSmall{5, 3, kMiniature, 40, 60, 4000};
constexpr HeatMap kQuick{5, 3, kMiniature, 40, 60, 1200};

void add_specs(const Setup& setup, const HeatMap& map, std::vector<train::RunSpec>& specs) {
  for (int blocks = 3; blocks <= map.most_blocks; ++blocks) {
    for (int layers = 1; layers <= map.most_layers; ++layers) {
      for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
        specs.push_back(lab_run_spec(
            setup,
            fmt::format("[data]\ntask = \"counting\"\nblocks = {}\nlengths = [{}, {}]\n"
                        "eval_lengths = [{}, {}]\nexamples = 20000\neval_tokens = {}\n"
                        "[model]\nlayers = {}\nwidth = {}\nheads = 1\ncontext = {}\n"
                        "positions = \"none\"\ntied = false\nvocab = 8\ninit_std = {}\n"
                        "[train]\nsteps = {}\nbatch = 64\nlearning_rate = {}\nwarmup = 200\n"
                        "schedule = \"linear\"\nfloor = 0.0\nweight_decay = 0.01\n"
                        "seed = {}\ncheckpoint_every = {}\n",
                        blocks, map.length / 2 + 1, map.length, map.length + 1, map.eval_length,
                        1000 * (map.eval_length + 1), layers, map.width, map.eval_length + 1,
                        map.width == kMiniature ? 0.08 : 0.05, map.steps,
                        map.width == kMiniature ? 1e-3 : 3e-4, seed, map.steps / 2)));
      }
    }
  }
}

std::vector<train::RunSpec> counting_specs(const Setup& setup) {
  std::vector<train::RunSpec> specs;
  add_specs(setup, setup.quick ? kQuick : kSmall, specs);
  if (!setup.quick) add_specs(setup, kFull, specs);
  return specs;
}

/// Best share of whole strings right over the seeds, by k and depth.
class BestScores {
 public:
  BestScores(const std::vector<TrainedRun>& runs, std::int64_t width) {
    for (const TrainedRun& run : runs) {
      if (run.spec.model.width != width) continue;
      double& best = best_[{run.spec.task.blocks, run.layers()}];
      if (!run.diverged()) best = std::max(best, run.number("sequence_accuracy"));
    }
  }

  bool is_enough(std::int64_t blocks) const { return at(blocks, blocks - 2) >= kEnough; }
  /// True for 3 blocks: no network has fewer than one layer.
  bool is_needed(std::int64_t blocks) const {
    return blocks == 3 || at(blocks, blocks - 3) <= kNotEnough;
  }
  double at(std::int64_t blocks, std::int64_t layers) const { return best_.at({blocks, layers}); }

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, double> best_;
};

void show(const BestScores& best, const HeatMap& map, const std::string& title,
          Conclusion& conclusion) {
  ExhibitTable table{title, {"language"}, {}};
  ExhibitChart chart{title, "layers", "strings right", false, false, {}};
  for (int layers = 1; layers <= map.most_layers; ++layers) {
    table.columns.push_back(fmt::format("{} layer{}", layers, layers == 1 ? "" : "s"));
  }
  for (int blocks = 3; blocks <= map.most_blocks; ++blocks) {
    std::vector<std::string> row{fmt::format("L{}", blocks)};
    ChartSeries series{row[0], {}};
    for (int layers = 1; layers <= map.most_layers; ++layers) {
      const double share = best.at(blocks, layers);
      row.push_back(fmt::format("{:.1f}{}", 100 * share, layers == blocks - 2 ? " *" : ""));
      series.dots.push_back({as_double(layers), share});
    }
    table.rows.push_back(std::move(row));
    chart.series.push_back(std::move(series));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

Conclusion conclude_counting(const Setup& setup, const std::vector<Json>& results) {
  const auto runs = trained_runs(counting_specs(setup), results);
  Conclusion conclusion;
  conclusion.measures = {{"enough", {}}, {"needed", {}}};
  if (setup.quick) {
    conclusion.notes.emplace_back("--quick trains the miniature only");
  } else {
    const BestScores best(runs, kFull.width);
    double enough = 0;
    double needed = 0;
    for (int blocks = 3; blocks <= kFull.most_blocks; ++blocks) {
      enough += best.is_enough(blocks) ? 1 : 0;
      needed += blocks > 3 && best.is_needed(blocks) ? 1 : 0;
    }
    conclusion.measures = {{"enough", enough}, {"needed", needed}};
    show(best, kFull,
         "Whole strings of 101 to 150 letters right, percent, best of the seeds; * depth k - 2",
         conclusion);
  }
  const BestScores best(runs, kSmall.width);
  double both = 0;
  for (int blocks = 3; blocks <= kSmall.most_blocks; ++blocks) {
    both += best.is_enough(blocks) && best.is_needed(blocks) ? 1 : 0;
  }
  conclusion.measures.push_back({"small", both});
  show(best, kSmall, "In miniature: strings of 41 to 60 letters, width 32", conclusion);
  conclusion.notes.emplace_back(
      "depth k - 2 that is not enough is a failure of training, not of the theory");
  conclusion.notes.push_back(training_note(setup, runs));
  return conclusion;
}

}  // namespace

Experiment counting_training_experiment() {
  return {"counting-trained",
          {seeds_option(3, 1)},
          [](const Setup& setup) { return training_parts(setup, counting_specs(setup)); },
          conclude_counting};
}

}  // namespace fathom::lab
