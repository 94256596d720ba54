#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

#include "core/counts.h"
#include "core/random.h"
#include "lab/frame/options.h"
#include "lab/frame/statistics.h"
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

/// Seeds of the orders that the criteria compare: attention first, feed-forward first, and the two
/// sandwiches that were best on their first seed.
constexpr std::size_t kComparedSeeds = 3;
constexpr std::size_t kComparedSandwiches = 2;

/// Of n attention and n feed-forward sublayers.
std::vector<OrderRun> order_runs(const Setup& setup) {
  const std::size_t n = setup.quick ? 3 : 8;
  const std::size_t compared = setup.quick ? 1 : std::min(setup.size("seeds"), kComparedSeeds);
  std::vector<OrderRun> runs;
  const auto add = [&](const std::string& name, const std::string& order, std::size_t seeds) {
    for (std::size_t seed = 1; seed <= seeds; ++seed) runs.push_back({name, order, seed});
  };
  add("interleaved", sandwich(n, 0), setup.size("seeds"));
  add("attention first", times('s', n) + times('f', n), compared);
  add("feed-forward first", times('f', n) + times('s', n), compared);
  for (std::size_t k = 1; k < n; ++k) {
    add(fmt::format("sandwich {}", k), sandwich(n, k), k <= kComparedSandwiches ? compared : 1);
  }
  const std::size_t randoms = setup.quick ? 2 : 10;
  for (std::uint64_t index = 1; index <= randoms; ++index) {
    add(fmt::format("random {}", index), random_order(n, index), 1);
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

/// Losses of every order by seed.
using OrderLosses = std::map<std::string, std::vector<double>>;

double mean_of(const std::vector<double>& losses) {
  return std::accumulate(losses.begin(), losses.end(), 0.0) / as_double(losses.size());
}

/// Mean over the seeds; orders with a single seed repeat it.
double mean_of(const std::vector<double>& losses, std::span<const std::size_t> seeds) {
  double sum = 0;
  for (const std::size_t seed : seeds) sum += losses[std::min(seed, losses.size() - 1)];
  return sum / as_double(seeds.size());
}

double best_sandwich(const OrderLosses& losses, std::span<const std::size_t> seeds) {
  double best = INFINITY;
  for (const auto& [name, each] : losses) {
    if (name.starts_with("sandwich")) best = std::min(best, mean_of(each, seeds));
  }
  return best;
}

/// Against the mean of all interleaved seeds; intervals resample the seeds of the other orders.
std::vector<Measure> order_measures(const OrderLosses& losses) {
  const double interleaved = mean_of(losses.at("interleaved"));
  const std::vector<double>& attention = losses.at("attention first");
  const std::vector<double>& feed_forward = losses.at("feed-forward first");
  const auto measure = [&](const char* criterion, const Statistic& statistic) -> Measure {
    std::vector<std::size_t> all(attention.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (all.size() < 2) return {criterion, statistic(all)};
    return {criterion, statistic(all), bootstrap_interval(all.size(), statistic)};
  };
  return {
      measure("attention-first",
              [&](auto seeds) { return mean_of(attention, seeds) - interleaved; }),
      measure("feed-forward-first",
              [&](auto seeds) { return mean_of(feed_forward, seeds) - mean_of(attention, seeds); }),
      measure("sandwich", [&](auto seeds) { return best_sandwich(losses, seeds) - interleaved; })};
}

Conclusion conclude_order(const Setup& setup, const std::vector<Json>& results) {
  const auto names = order_runs(setup);
  const auto runs = trained_runs(order_specs(setup), results);
  OrderLosses losses;
  Conclusion conclusion;
  ExhibitTable table{"Held-out loss in nats per byte", {"order", "sublayers", "seed", "loss"}, {}};
  ExhibitChart chart{"Loss by order of the sublayers", "run", "nats per byte", false, false, {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const OrderRun& run = names[i];
    losses[run.name].push_back(runs[i].loss());
    table.rows.push_back({run.name, run.order, std::to_string(run.seed),
                          runs[i].diverged() ? "diverged" : fmt::format("{:.4f}", runs[i].loss())});
    const std::string family = run.name.substr(0, run.name.find_last_not_of("0123456789 ") + 1);
    if (chart.series.empty() || chart.series.back().name != family) {
      chart.series.push_back({family, {}});
    }
    chart.series.back().dots.push_back({as_double(i + 1), runs[i].loss()});
  }
  const std::vector<double>& baseline = losses.at("interleaved");
  const double mean = mean_of(baseline);
  int better = 0;
  int randoms = 0;
  for (const auto& [name, each] : losses) {
    if (!name.starts_with("random")) continue;
    ++randoms;
    better += each.front() < mean ? 1 : 0;
  }
  const auto [low, high] = std::minmax_element(baseline.begin(), baseline.end());
  conclusion.measures = order_measures(losses);
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
