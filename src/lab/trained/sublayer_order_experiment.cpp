#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/counts.h"
#include "core/random.h"
#include "lab/frame/options.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {
namespace {

struct OrderRun {
  std::string name;
  std::string order;
  std::size_t seed = 1;
};

std::string times(char sublayer, std::size_t count) {
  return std::string(count, sublayer);
}

/// s^k (sf)^(n-k) f^k
std::string sandwich(std::size_t n, std::size_t k) {
  std::string order = times('s', k);
  for (std::size_t i = 0; i < n - k; ++i) order += "sf";
  return order + times('f', k);
}

std::string random_order(std::size_t n, std::uint64_t index) {
  constexpr std::uint64_t kStream = 0x6f72646572;  // "order"
  const RandomStream random(index, kStream);
  std::string order = times('s', n) + times('f', n);
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    std::swap(order[i], order[random.below(i, i + 1)]);
  }
  return order;
}

/// Of n attention and n feed-forward sublayers.
std::vector<OrderRun> order_runs(const Setup& setup) {
  const std::size_t n = setup.quick ? 3 : 8;
  std::vector<OrderRun> runs;
  for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
    runs.push_back({"interleaved", sandwich(n, 0), seed});
  }
  runs.push_back({"attention first", times('s', n) + times('f', n)});
  runs.push_back({"feed-forward first", times('f', n) + times('s', n)});
  for (std::size_t k = 1; k < n; ++k) {
    runs.push_back({fmt::format("sandwich {}", k), sandwich(n, k)});
  }
  const std::size_t randoms = setup.quick ? 2 : 10;
  for (std::uint64_t index = 1; index <= randoms; ++index) {
    runs.push_back({fmt::format("random {}", index), random_order(n, index)});
  }
  return runs;
}

std::vector<train::RunSpec> order_specs(const Setup& setup) {
  std::vector<train::RunSpec> specs;
  for (const OrderRun& run : order_runs(setup)) {
    const int steps = setup.quick ? 300 : 2000;
    specs.push_back(lab_run_spec(
        setup, fmt::format("[data]\ntokens = \"sotu\"\neval_tokens = {}\n"
                           "[model]\nlayers = {}\nwidth = {}\nheads = {}\ncontext = {}\n"
                           "order = \"{}\"\n"
                           "[train]\nsteps = {}\nbatch = {}\nlearning_rate = {}\nwarmup = {}\n"
                           "seed = {}\neval_every = {}\ncheckpoint_every = {}\n",
                           setup.quick ? 50000 : 500000, run.order.size() / 2,
                           setup.quick ? 64 : 256, setup.quick ? 4 : 8, setup.quick ? 128 : 256,
                           run.order, steps, setup.quick ? 16 : 32, setup.quick ? 3e-3 : 1e-3,
                           steps / 10, run.seed, steps / 4, steps / 2)));
  }
  return specs;
}

Conclusion conclude_order(const Setup& setup, const std::vector<Json>& results) {
  const auto names = order_runs(setup);
  const auto runs = trained_runs(order_specs(setup), results);
  std::map<std::string, double> loss;
  std::vector<double> baseline;
  Conclusion conclusion;
  ExhibitTable table{"Held-out loss in nats per byte", {"order", "sublayers", "seed", "loss"}, {}};
  ExhibitChart chart{"Loss by order of the sublayers", "run", "nats per byte", false, false, {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const OrderRun& run = names[i];
    loss[run.name] = runs[i].loss();
    if (run.name == "interleaved") baseline.push_back(runs[i].loss());
    table.rows.push_back({run.name, run.order, std::to_string(run.seed),
                          runs[i].diverged() ? "diverged" : fmt::format("{:.4f}", runs[i].loss())});
    const std::string family = run.name.substr(0, run.name.find_last_not_of("0123456789 ") + 1);
    if (chart.series.empty() || chart.series.back().name != family) {
      chart.series.push_back({family, {}});
    }
    chart.series.back().dots.push_back({as_double(i + 1), runs[i].loss()});
  }
  double mean = 0;
  for (const double each : baseline) mean += each / as_double(baseline.size());
  double best = INFINITY;
  double better = 0;
  double randoms = 0;
  for (const auto& [name, each] : loss) {
    if (name.starts_with("sandwich")) best = std::min(best, each);
    if (!name.starts_with("random")) continue;
    ++randoms;
    better += each < mean ? 1 : 0;
  }
  const auto [low, high] = std::minmax_element(baseline.begin(), baseline.end());
  conclusion.measures = {
      {"attention-first", loss["attention first"] - mean},
      {"feed-forward-first", loss["feed-forward first"] - loss["attention first"]},
      {"sandwich", best - mean}};
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
  conclusion.notes = {
      fmt::format(
          "interleaved: mean {:.4f} over {} seeds, {:.4f} to {:.4f}; differences below that "
          "spread are noise",
          mean, baseline.size(), *low, *high),
      fmt::format("{} of {} random orders beat the interleaved mean (published: about a third)",
                  better, randoms),
      training_note(setup, runs)};
  return conclusion;
}

}  // namespace

Experiment sublayer_order_experiment() {
  return {"sublayer-order",
          {seeds_option(5, 2)},
          [](const Setup& setup) { return training_parts(setup, order_specs(setup)); },
          conclude_order};
}

}  // namespace fathom::lab
