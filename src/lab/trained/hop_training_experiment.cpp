#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/counts.h"
#include "lab/frame/options.h"
#include "lab/frame/statistics.h"
#include "lab/trained/hop_tables.h"
#include "lab/trained/task_heads.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {
namespace {

constexpr int kDeepest = 6;
constexpr int kDeepestFirst = 5;  // of the first runs, whose criteria stop there
constexpr std::int64_t kSmallWidth = 32;

/// The published task and size, and its 317M tokens in larger batches.
train::RunSpec large_spec(const Setup& setup, const PublishedWidth& size, int layers,
                          std::size_t seed) {
  return lab_run_spec(
      setup,
      fmt::format("[data]\ntask = \"k-hop\"\neval_tokens = {}\n"
                  "[model]\nlayers = {}\nwidth = {}\nheads = {}\ncontext = 99\nvocab = 24\n"
                  "tied = false\n"
                  "[train]\nsteps = 12500\nbatch = 256\nlearning_rate = 5e-4\nwarmup = 1000\n"
                  "schedule = \"linear\"\nfloor = 0.0\nweight_decay = 0.01\nbeta2 = 0.999\n"
                  "seed = {}\neval_every = 1250\ncheckpoint_every = 6250\n",
                  99 * 6800, layers, size.width, size.heads, seed));
}

train::RunSpec small_spec(const Setup& setup, int layers, std::size_t seed) {
  return lab_run_spec(
      setup, fmt::format("[data]\ntask = \"k-hop\"\nhops = [0, 1, 2, 4]\neval_tokens = {}\n"
                         "[model]\nlayers = {}\nwidth = {}\nheads = 2\ncontext = 33\nvocab = 16\n"
                         "tied = false\ninit_std = 0.08\n"
                         "[train]\nsteps = 5000\nbatch = 32\nlearning_rate = 2e-3\nwarmup = 200\n"
                         "schedule = \"linear\"\nfloor = 0.0\nweight_decay = 0.01\n"
                         "seed = {}\neval_every = 500\ncheckpoint_every = 2500\n",
                         33 * 1000, layers, kSmallWidth, seed));
}

/// The runs of the first experiment: the miniature, and width 128 up to five layers.
std::vector<train::RunSpec> hop_specs(const Setup& setup) {
  std::vector<train::RunSpec> specs;
  for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
    for (const int layers : {1, 2, 3, 4}) specs.push_back(small_spec(setup, layers, seed));
    for (int layers = 2; layers <= kDeepestFirst && !setup.quick; ++layers) {
      specs.push_back(large_spec(setup, published_widths().front(), layers, seed));
    }
  }
  return specs;
}

/// Runs added later, whose heads are read: six layers of width 128, and width 256.
std::vector<train::RunSpec> watched_hop_specs(const Setup& setup) {
  std::vector<train::RunSpec> specs;
  for (std::size_t seed = 1; seed <= setup.size("seeds") && !setup.quick; ++seed) {
    specs.push_back(large_spec(setup, published_widths().front(), kDeepest, seed));
    for (int layers = 2; layers <= kDeepest; ++layers) {
      specs.push_back(large_spec(setup, published_widths().back(), layers, seed));
    }
  }
  return specs;
}

std::vector<Part> hop_parts(const Setup& setup) {
  std::vector<Part> parts = training_parts(setup, hop_specs(setup));
  for (Part& part :
       training_parts(setup, watched_hop_specs(setup), {"hop heads v1", read_hop_heads})) {
    parts.push_back(std::move(part));
  }
  return parts;
}

double least_growth(const ByDepth& runs, Units seeds) {
  double least = INFINITY;
  for (auto depth = runs.begin(); std::next(depth) != runs.end(); ++depth) {
    const std::int64_t before = largest_solved(depth->second, seeds);
    const std::int64_t after = largest_solved(std::next(depth)->second, seeds);
    if (after == kMostHops) break;  // there is no larger k to solve
    least = std::min(least, as_double(after) / as_double(std::max<std::int64_t>(1, before)));
  }
  return least == INFINITY ? as_double(kMostHops) : least;
}

double depths_off_table(const PublishedWidth& published, const ByDepth& runs, Units seeds) {
  int off = 0;
  for (const auto& [layers, each] : runs) {
    const std::int64_t solved = largest_solved(each, seeds);
    const bool fits =
        solved >= published.largest_at(layers - 1) && solved <= published.largest_at(layers + 1);
    off += fits ? 0 : 1;
  }
  return off;
}

double least_shallow_error(const ByDepth& runs, Units seeds) {
  double least = INFINITY;
  for (std::int64_t k = 8; k <= kMostHops; ++k) {
    least = std::min(least, mean_error(runs.at(2), seeds, k));
  }
  return least;
}

Measure measured(const std::string& criterion, const ByDepth& runs,
                 const std::function<double(const ByDepth&, Units)>& statistic) {
  const std::size_t seeds = runs.begin()->second.size();
  std::vector<std::size_t> all(seeds);
  for (std::size_t i = 0; i < seeds; ++i) all[i] = i;
  Measure measure{criterion, statistic(runs, all)};
  if (seeds > 1) {
    measure.interval =
        bootstrap_interval(seeds, [&](Units units) { return statistic(runs, units); });
  }
  return measure;
}

/// Layer l of the four-layer network should attend 2^(l - 2) hops back.
double least_composition(const ByDepth& runs, Units seeds) {
  constexpr std::int64_t kComposingDepth = 4;
  double least = 1;
  for (std::int64_t layer = 2; layer <= kComposingDepth; ++layer) {
    least =
        std::min(least, hop_attention(runs.at(kComposingDepth), seeds, layer, as_size(layer - 2)));
  }
  return least;
}

void conclude_large(std::map<std::int64_t, ByDepth>& by_width, Conclusion& conclusion) {
  const PublishedWidth& narrow = published_widths().front();
  const PublishedWidth& wide = published_widths().back();
  ByDepth first = by_width[narrow.width];
  first.erase(kDeepest);
  const auto off_table = [](const PublishedWidth& published) {
    return [&published](const ByDepth& runs, Units seeds) {
      return depths_off_table(published, runs, seeds);
    };
  };
  const ByDepth& all = by_width[narrow.width];
  const ByDepth& twice = by_width[wide.width];
  conclusion.measures = {measured("growth", first, least_growth),
                         measured("table", first, off_table(narrow)),
                         measured("shallow", first, least_shallow_error),
                         measured("six", all,
                                  [](const ByDepth& runs, Units seeds) {
                                    return as_double(largest_solved(runs.at(kDeepest), seeds));
                                  }),
                         measured("growth-256", twice, least_growth),
                         measured("table-256", twice, off_table(wide)),
                         measured("composes", twice, least_composition)};
  for (const PublishedWidth& size : published_widths()) {
    show_hop_errors(size, by_width[size.width], conclusion);
    show_hop_heads(size, by_width[size.width], conclusion);
  }
}

Conclusion conclude_hops(const Setup& setup, const std::vector<Json>& results) {
  std::vector<train::RunSpec> specs = hop_specs(setup);
  for (train::RunSpec& spec : watched_hop_specs(setup)) specs.push_back(std::move(spec));
  const auto runs = trained_runs(specs, results);
  std::map<std::int64_t, ByDepth> by_width;
  for (const TrainedRun& run : runs) {
    by_width[run.spec.model.width][run.layers()].push_back(&run);
  }
  const ByDepth& small = by_width[kSmallWidth];
  Conclusion conclusion;
  if (!setup.quick) {
    conclude_large(by_width, conclusion);
  } else {
    for (const char* id :
         {"growth", "table", "shallow", "six", "growth-256", "table-256", "composes"}) {
      conclusion.measures.push_back({id, {}});
    }
    conclusion.notes.emplace_back(
        "the published size has no honest form for a processor: --quick trains the miniature only");
  }
  const auto error_at = [](std::int64_t layers, std::int64_t k) {
    return [=](const ByDepth& each, Units seeds) { return mean_error(each.at(layers), seeds, k); };
  };
  conclusion.measures.push_back(measured("small-one", small, error_at(1, 1)));
  conclusion.measures.push_back(measured("small-two", small, error_at(2, 1)));
  conclusion.measures.push_back(measured("small-four", small, [](const ByDepth& each, Units seeds) {
    return mean_error(each.at(4), seeds, 4) / mean_error(each.at(2), seeds, 4);
  }));
  show_small_hops(small, conclusion);
  conclusion.notes.emplace_back(
      "an error is a wrong answer at a position where all hops exist; a guess among the other "
      "three characters errs in about 70 %");
  conclusion.notes.push_back(training_note(setup, runs));
  return conclusion;
}

}  // namespace

Experiment hop_training_experiment() {
  return {"k-hop-trained", {seeds_option(3, 1)}, hop_parts, conclude_hops};
}

}  // namespace fathom::lab
