#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "core/error.h"
#include "lab/attention_matrices/attention_fit.h"
#include "lab/attention_matrices/matrix_experiments.h"
#include "lab/attention_matrices/reachable_rank.h"
#include "lab/frame/options.h"
#include "lab/frame/statistics.h"

namespace fathom::lab {
namespace {

constexpr int kBottleneckVersion = 1;
/// One multiply-add of the fit, measured.
constexpr double kBottleneckSecondsPerOperation = 6e-10;

std::vector<std::size_t> head_sizes(const Setup& setup) {
  const std::size_t n = setup.size("tokens");
  if (setup.size("head-size") != 0) return {setup.size("head-size")};
  std::set<std::size_t> sizes{1, n / 4, n / 2, n * 3 / 4, n - 1, n};
  for (const std::size_t near : {n / 2 - 1, n / 2 + 1, n - 2}) {
    if (near >= 1 && near <= n) sizes.insert(near);
  }
  sizes.erase(0);
  return {sizes.begin(), sizes.end()};
}

/// The threshold without a mask, with one, and the same by singular values.
Part threshold_part(std::size_t tokens, std::size_t seed) {
  return {fmt::format("reachable v{} tokens={} seed={}", kBottleneckVersion, tokens, seed), 1,
          [tokens, seed](const Ticker&) {
            const ReachableSize free = reachable_size(tokens, false, seed);
            const ReachableSize causal = reachable_size(tokens, true, seed);
            return Json{{"bidirectional", {free.lower, free.upper}},
                        {"causal", {causal.lower, causal.upper}},
                        {"singular", singular_rank(random_target(tokens, false, seed))}};
          }};
}

Part fit_part(std::size_t tokens, bool causal, std::size_t size, std::size_t steps,
              std::size_t seed, double cost) {
  return {fmt::format("head fit v{} tokens={} {} size={} steps={} seed={}", kBottleneckVersion,
                      tokens, causal ? "causal" : "bidirectional", size, steps, seed),
          cost, [=](const Ticker& tick) {
            const AttentionFit fit =
                fit_head(random_target(tokens, causal, seed), size, steps, seed, tick);
            return Json{{"divergence", fit.divergence}, {"steps", fit.steps}};
          }};
}

std::vector<Part> plan_bottleneck(const Setup& setup) {
  const std::size_t n = setup.size("tokens");
  const std::size_t seeds = setup.size("seeds");
  std::vector<Part> parts;
  double seconds = 0;
  for (std::size_t seed = 1; seed <= seeds; ++seed) parts.push_back(threshold_part(n, seed));
  for (const bool causal : {false, true}) {
    for (const std::size_t size : head_sizes(setup)) {
      if (size > n) {
        throw ConfigError(
            fmt::format("--head-size must be at most the {} tokens, not {}", n, size));
      }
      const double cost =
          static_cast<double>(setup.size("steps")) *
          (6.0 * static_cast<double>(n * n * size) + 100.0 * static_cast<double>(n * n)) *
          kBottleneckSecondsPerOperation;
      seconds += cost * static_cast<double>(seeds);
      for (std::size_t seed = 1; seed <= seeds; ++seed) {
        parts.push_back(fit_part(n, causal, size, setup.size("steps"), seed, cost));
      }
    }
  }
  const double rank_seconds =
      1e-9 * std::pow(static_cast<double>(n), 4) * static_cast<double>(seeds);
  check_cost(setup, fmt::format("fits of heads on {} tokens", n), seconds + rank_seconds,
             8.0 * static_cast<double>(n * n) * 20);
  return parts;
}

/// Largest and smallest divergence over the seeds, for one mask and head size.
struct FitRange {
  std::size_t size = 0;
  bool causal = false;
  double least = 0;
  double median = 0;
  double most = 0;
};

/// Exact ranks over all seeds.
struct Thresholds {
  double below = 0;  // seeds whose exact or numerical rank is not n - 1
  std::size_t causal_low = 0;
  std::size_t causal_high = 0;
};

Thresholds thresholds_of(std::size_t n, std::span<const Json> results) {
  Thresholds found{0, n, 0};
  for (const Json& result : results) {
    const bool full =
        result.at("bidirectional") == Json{n - 1, n - 1} && result.at("singular") == n - 1;
    found.below += full ? 0 : 1;
    found.causal_low = std::min(found.causal_low, result.at("causal")[0].get<std::size_t>());
    found.causal_high = std::max(found.causal_high, result.at("causal")[1].get<std::size_t>());
  }
  return found;
}

/// Shows the fits; `results` holds one per mask, head size and seed.
std::vector<FitRange> show_fits(const Setup& setup, std::span<const Json> results,
                                Conclusion& conclusion) {
  ExhibitTable table{fmt::format("KL divergence of the best fit, {} tokens", setup.size("tokens")),
                     {"mask", "head size", "least", "median", "most"},
                     {}};
  ExhibitChart chart{"Fits stall below the threshold",
                     "head size",
                     "KL divergence (nats per row)",
                     false,
                     true,
                     {}};
  const std::size_t seeds = setup.size("seeds");
  std::size_t part = 0;
  std::vector<FitRange> fits;
  conclusion.data["fits"] = Json::array();
  for (const bool causal : {false, true}) {
    ChartSeries series{causal ? "causal" : "bidirectional", {}};
    for (const std::size_t size : head_sizes(setup)) {
      std::vector<double> values;
      for (std::size_t seed = 0; seed < seeds; ++seed, ++part) {
        values.push_back(results[part].at("divergence").get<double>());
      }
      std::sort(values.begin(), values.end());
      fits.push_back({size, causal, values.front(), quartiles(values).median, values.back()});
      const FitRange& fit = fits.back();
      conclusion.data["fits"].push_back({{"mask", causal ? "causal" : "none"},
                                         {"head_size", size},
                                         {"divergence", fit.median},
                                         {"least", fit.least},
                                         {"most", fit.most}});
      table.rows.push_back({series.name, std::to_string(size), fmt::format("{:.1e}", fit.least),
                            fmt::format("{:.1e}", fit.median), fmt::format("{:.1e}", fit.most)});
      series.dots.push_back({static_cast<double>(size), fit.median, fit.least, fit.most});
    }
    chart.series.push_back(std::move(series));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
  return fits;
}

Conclusion conclude_bottleneck(const Setup& setup, const std::vector<Json>& results) {
  const std::size_t n = setup.size("tokens");
  const std::size_t seeds = setup.size("seeds");
  const std::span<const Json> all(results);
  Conclusion conclusion;
  const auto [below, causal_low, causal_high] = thresholds_of(n, all.first(seeds));
  conclusion.data["thresholds"] = {{"bidirectional", n - 1}, {"causal", causal_high}};
  if (below > 0) conclusion.data["thresholds"]["bidirectional"] = nullptr;
  const std::vector<FitRange> fits = show_fits(setup, all.subspan(seeds), conclusion);
  std::optional<double> enough;
  std::optional<double> stall;
  for (const FitRange& fit : fits) {
    if (fit.causal) continue;
    if (fit.size + 1 >= n) enough = std::max(enough.value_or(0), fit.most);
    if (fit.size <= n / 2 && fit.size + 1 < n) stall = std::min(stall.value_or(1e9), fit.least);
  }
  conclusion.measures = {{"rank", below},
                         {"sharp", below > 0 ? 0.0 : 1.0},
                         {"causal", static_cast<double>(n - 1) - static_cast<double>(causal_high)}};
  if (enough) conclusion.measures.push_back({"enough", enough});
  if (stall) conclusion.measures.push_back({"stall", stall});
  conclusion.notes.push_back(fmt::format(
      "exact thresholds for a matrix without structure: head size {} without a mask, {} under a "
      "causal one (bounds from below and above {})",
      n - 1, causal_high,
      causal_low == causal_high ? "meet" : fmt::format("{} and {}", causal_low, causal_high)));
  return conclusion;
}

}  // namespace

Experiment low_rank_bottleneck_experiment() {
  Option tokens = integer_option("tokens", 32, "N", "Sequence length n", 2, 512);
  return {"low-rank-bottleneck",
          {tokens, integer_option("head-size", 0, "R", "One head size; 0: a range of them", 0, 512),
           integer_option("steps", 4000, "N", "Steps of a fit", 1, 10000000), seeds_option(8, 2)},
          plan_bottleneck,
          conclude_bottleneck};
}

}  // namespace fathom::lab
