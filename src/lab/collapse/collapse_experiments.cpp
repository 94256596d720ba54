#include "lab/collapse/collapse_experiments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/units.h"
#include "lab/collapse/collapse_measure.h"
#include "lab/frame/options.h"

namespace fathom::lab {
namespace {

/// Bumped whenever the result of a seed could change.
constexpr int kCollapseVersion = 2;
constexpr std::size_t kSeedsPerPart = 8;
/// One multiply-add of 106 bits, measured.
constexpr double kCollapseSecondsPerOperation = 4e-8;

std::vector<Option> stack_options(bool causal, bool skip) {
  std::vector<Option> options{
      integer_option("tokens", 16, "N", "Tokens n", 2, 65536),
      integer_option("width", 32, "D", "Width d", 1, 65536),
      integer_option("heads", 2, "H", "Heads of size d/H", 1, 65536),
      number_option("scale", 1, "S", "Query and key weights have deviation S / sqrt(d)", 0, 1e6),
      text_option("mask", causal ? "causal" : "none", "NAME", "Which tokens a token sees",
                  {"none", "causal"}),
      integer_option("window", 0, "W", "Only tokens less than W away; 0: all", 0, 65536),
      flag_option("skip", "X + Y in place of Y"),
      text_option("norm", "none", "NAME", "Bring rows to mean 0 and variance 1", {"none", "layer"}),
      flag_option("mlp", "A ReLU MLP of width 4d after the attention"),
      integer_option("layers", 12, "L", "Layers", 1, 1000),
      seeds_option(64, 10),
  };
  if (skip) {
    for (Option& option : options) {
      if (option.name == "skip") option.value = true;
    }
  }
  return options;
}

StackSpec collapse_spec(const Setup& setup) {
  StackSpec spec;
  spec.tokens = setup.size("tokens");
  spec.width = setup.size("width");
  spec.heads = setup.size("heads");
  spec.layers = setup.size("layers");
  spec.scale = setup.number("scale");
  spec.causal = setup.text("mask") == "causal";
  spec.window = setup.size("window");
  spec.skip = setup.flag("skip");
  spec.norm = setup.text("norm") == "layer";
  spec.mlp = setup.flag("mlp");
  validate(spec);
  return spec;
}

/// The set-ups of a run: the one that was asked for, or the claim's list, the primary one first.
using SpecList = std::function<std::vector<StackSpec>(StackSpec primary)>;

std::vector<StackSpec> specs_of(const Setup& setup, const SpecList& list) {
  const StackSpec primary = collapse_spec(setup);
  return setup.own ? std::vector<StackSpec>{primary} : list(primary);
}

std::vector<Part> plan_stacks(const Setup& setup, const std::vector<StackSpec>& specs) {
  const std::size_t seeds = setup.size("seeds");
  double operations = 0;
  double bytes = 0;
  for (const StackSpec& spec : specs) {
    operations += stack_operations(spec) * static_cast<double>(seeds);
    const auto n = static_cast<double>(spec.tokens);
    const auto d = static_cast<double>(spec.width);
    bytes =
        std::max(bytes, static_cast<double>(setup.threads) *
                            (static_cast<double>(spec.layers) * (spec.mlp ? 12 : 4) * 8 * d * d +
                             16 * (8 * n * d + n * n)));
  }
  check_cost(setup, fmt::format("{} stacks ({})", seeds * specs.size(), specs.front().key()),
             operations * kCollapseSecondsPerOperation, bytes);
  std::vector<Part> parts;
  for (const StackSpec& spec : specs) {
    for (std::size_t first = 0; first < seeds; first += kSeedsPerPart) {
      const std::size_t end = std::min(first + kSeedsPerPart, seeds);
      Part part;
      part.key =
          fmt::format("collapse v{} {} seeds={}-{}", kCollapseVersion, spec.key(), first + 1, end);
      part.cost = stack_operations(spec) * static_cast<double>(end - first);
      part.compute = [spec, first, end](const Ticker& tick) {
        Json runs = Json::array();
        for (std::size_t seed = first; seed < end; ++seed) {
          const double done = static_cast<double>(seed - first) / static_cast<double>(end - first);
          runs.push_back(to_json(measure_collapse(spec, seed + 1, [&] { tick(done); })));
        }
        return runs;
      };
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

std::vector<CollapseSummary> summaries(const std::vector<StackSpec>& specs,
                                       const std::vector<Json>& results) {
  const std::size_t parts = results.size() / specs.size();
  std::vector<CollapseSummary> all;
  for (std::size_t s = 0; s < specs.size(); ++s) {
    std::vector<CollapseRun> runs;
    for (std::size_t p = 0; p < parts; ++p) {
      for (const Json& run : results[s * parts + p]) runs.push_back(collapse_run(run));
    }
    all.push_back(summarise(specs[s], runs));
  }
  return all;
}

std::string title(const StackSpec& spec) {
  std::string text = spec.causal ? "causal" : "bidirectional";
  if (spec.window != 0) text += fmt::format(", window {}", spec.window);
  if (spec.skip) text += ", skip";
  if (spec.norm) text += ", norm";
  if (spec.mlp) text += ", MLP";
  return text + fmt::format(", scale {:g}", spec.scale);
}

std::string rho_text(double log10_rho) {
  if (!std::isfinite(log10_rho)) return "-inf";  // all tokens are equal
  if (std::fabs(log10_rho) < 100) return fmt::format("{:.2f}", log10_rho);
  return format_whole(std::llround(log10_rho));
}

std::string decades_text(double decades) {
  if (!std::isfinite(decades)) return "-";
  return decades < 1000 ? format_significant(decades, 3) : format_whole(std::llround(decades));
}

/// Layers 1, 2, 4 and the last one.
std::vector<std::size_t> shown_layers(std::size_t layers) {
  std::vector<std::size_t> shown;
  for (const std::size_t layer : {1, 2, 4}) {
    if (layer < layers) shown.push_back(layer);
  }
  shown.push_back(layers);
  return shown;
}

/// A set-up layer by layer, with the theorem's bound where there is one.
ExhibitTable layer_table(const CollapseSummary& summary) {
  const bool bounded = summary.bounds + summary.vacuous > 0;
  ExhibitTable table{
      fmt::format("Layer by layer: {}", title(summary.spec)),
      {"layer", "log10 rho", "lower quartile", "upper quartile", "exponent", "log10 |X - mean|"},
      {}};
  if (bounded) table.columns.push_back("theorem's bound on it");
  for (std::size_t l = 1; l <= summary.spec.layers; ++l) {
    const Quartiles& rho = summary.log10_rho[l];
    const LayerLaw& law = summary.layers[l - 1];
    table.rows.push_back(
        {std::to_string(l), rho_text(rho.median), rho_text(rho.low), rho_text(rho.high),
         law.exponent.count == 0 ? "-" : fmt::format("{:.3f}", law.exponent.median),
         rho_text(law.log10_residual)});
    if (!bounded) continue;
    table.rows.back().push_back(law.log10_bound ? rho_text(*law.log10_bound) : "vacuous");
  }
  return table;
}

/// What every collapse claim shows: the primary set-up's fields, all set-ups, table and chart.
Conclusion show(const std::vector<CollapseSummary>& all) {
  Conclusion conclusion;
  conclusion.data = to_json(all.front());
  conclusion.data["setups"] = Json::array();
  const std::vector<std::size_t> shown = shown_layers(all.front().spec.layers);
  ExhibitTable table{"Medians over seeds", {"set-up", "exponent", "decades per layer"}, {}};
  for (const std::size_t layer : shown) {
    table.columns.push_back(fmt::format("{}layer {}", layer == 1 ? "log10 rho, " : "", layer));
  }
  ExhibitChart chart{
      "How far the tokens are from being equal", "layer", "log10 rho", false, false, {}};
  for (const CollapseSummary& summary : all) {
    Json entry{{"setup", title(summary.spec)}};
    entry.update(to_json(summary));
    conclusion.data["setups"].push_back(std::move(entry));
    table.rows.push_back(
        {title(summary.spec),
         summary.exponent.count == 0 ? "-" : fmt::format("{:.2f}", summary.exponent.median),
         decades_text(summary.decades.median)});
    for (const std::size_t layer : shown) {
      table.rows.back().push_back(rho_text(summary.log10_rho[layer].median));
    }
    ChartSeries series{title(summary.spec), {}};
    for (std::size_t l = 0; l < summary.log10_rho.size(); ++l) {
      const Quartiles& q = summary.log10_rho[l];
      if (q.median < -40) break;  // further down only doubly exponential curves show
      series.dots.push_back({static_cast<double>(l), q.median, q.low, q.high});
    }
    chart.series.push_back(std::move(series));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
  double difference = 0;
  for (const CollapseSummary& summary : all) {
    difference = std::max(difference, summary.largest_difference);
  }
  conclusion.notes.push_back(fmt::format(
      "rho above 1e-30 is computed in 106 bits from the definition, below it by a form that keeps "
      "mean and residual apart; where both can be compared log10 rho differs by at most {:.1e}; "
      "the "
      "lines of the chart end at 1e-40",
      difference));
  return conclusion;
}

bool plain(const StackSpec& spec) {
  return !spec.skip && !spec.mlp;
}

// ---- doubly exponential without a mask

/// Weights small enough for the theorem's bound not to be vacuous.
constexpr double kBoundScale = 0.005;
/// log10 rho from which the last layers show the limit of the law.
constexpr double kFarDown = -300;

std::vector<StackSpec> rank_collapse_list(StackSpec primary) {
  std::vector<StackSpec> list{primary};
  const auto add = [&](double scale, bool norm, bool causal) {
    StackSpec spec = primary;
    spec.scale = scale;
    spec.norm = norm;
    spec.causal = causal;
    list.push_back(spec);
  };
  add(0.3, false, false);
  add(2, false, false);
  add(1, true, false);
  add(1, false, true);
  add(kBoundScale, false, false);
  return list;
}

/// Of several measures of one criterion, keeps the one farthest from 3.
void add_farthest_from_cubic(const std::vector<Measure>& measures, Conclusion& conclusion) {
  if (measures.empty()) return;
  const auto distance = [](const Measure& measure) { return std::fabs(*measure.value - 3); };
  conclusion.measures.push_back(*std::max_element(
      measures.begin(), measures.end(),
      [&](const Measure& a, const Measure& b) { return distance(a) < distance(b); }));
}

Conclusion conclude_rank_collapse(const Setup& setup, const std::vector<Json>& results) {
  const auto all = summaries(specs_of(setup, rank_collapse_list), results);
  Conclusion conclusion = show(all);
  std::vector<Measure> free;
  std::vector<Measure> causal;
  std::vector<Measure> limits;
  std::size_t bounds = 0;
  std::size_t violations = 0;
  for (const CollapseSummary& summary : all) {
    bounds += summary.bounds;
    violations += summary.violations;
    const bool for_bound_only = !setup.own && summary.spec.scale == kBoundScale;
    if (!plain(summary.spec) || for_bound_only || summary.exponent.count == 0) continue;
    if (summary.spec.all_see_all()) {
      free.push_back({"exponent", summary.exponent.median, summary.exponent_interval});
      const Quartiles& before = summary.log10_rho[summary.spec.layers - 1];
      if (before.median < kFarDown) limits.push_back({"limit", summary.last_exponent});
    } else {
      causal.push_back({"causal", summary.exponent.median, summary.exponent_interval});
    }
  }
  add_farthest_from_cubic(free, conclusion);
  add_farthest_from_cubic(limits, conclusion);
  if (bounds > 0) {
    conclusion.measures.push_back({"bound", static_cast<double>(violations)});
  } else if (all.front().vacuous > 0) {
    conclusion.notes.push_back("the theorem's bound is vacuous here: its right side is 1 or more");
  }
  add_farthest_from_cubic(causal, conclusion);
  conclusion.tables.push_back(layer_table(all.front()));
  if (!setup.own) conclusion.tables.push_back(layer_table(all.back()));  // bound not vacuous
  return conclusion;
}

// ---- masked attention

std::vector<StackSpec> masked_list(StackSpec primary) {
  std::vector<StackSpec> list{primary};
  for (const double scale : {0.3, 2.0}) {
    StackSpec spec = primary;
    spec.scale = scale;
    list.push_back(spec);
  }
  StackSpec norm = primary;
  norm.norm = true;
  list.push_back(norm);
  StackSpec local = primary;
  local.window = 4;
  list.push_back(local);
  return list;
}

Conclusion conclude_masked(const Setup& setup, const std::vector<Json>& results) {
  const auto all = summaries(specs_of(setup, masked_list), results);
  Conclusion conclusion = show(all);
  const CollapseSummary& primary = all.front();
  if (primary.spec.all_see_all() || !plain(primary.spec)) return conclusion;
  double r_squared = 1;
  double last = 0;
  for (const CollapseSummary& summary : all) {
    if (summary.spec.window != 0) continue;
    r_squared = std::min(r_squared, summary.line.r_squared);
    last = std::max(last, summary.last_exponent);
  }
  conclusion.measures = {{"linear", r_squared},
                         {"exponent", last},
                         {"rate", primary.decades.median, primary.decades_interval}};
  if (!setup.own) {
    conclusion.measures.push_back({"local", all.back().decades.median / primary.decades.median});
  }
  return conclusion;
}

// ---- skips and MLPs

std::vector<StackSpec> skip_list(StackSpec primary) {
  std::vector<StackSpec> list;
  for (const bool norm : {false, true}) {
    for (const bool mlp : {false, true}) {
      StackSpec spec = primary;
      spec.norm = norm;
      spec.mlp = mlp;
      list.push_back(spec);
    }
  }
  for (const bool norm : {false, true}) {
    StackSpec spec = primary;
    spec.skip = false;
    spec.mlp = true;
    spec.norm = norm;
    list.push_back(spec);
  }
  return list;
}

Conclusion conclude_skip(const Setup& setup, const std::vector<Json>& results) {
  const auto all = summaries(specs_of(setup, skip_list), results);
  Conclusion conclusion = show(all);
  std::optional<double> with_skip;
  std::optional<double> mlp_alone;
  for (const CollapseSummary& summary : all) {
    const double final = summary.log10_rho.back().median;
    if (summary.spec.skip) with_skip = std::min(with_skip.value_or(0), final);
    if (!summary.spec.skip && summary.spec.mlp) mlp_alone = std::min(mlp_alone.value_or(0), final);
  }
  if (with_skip) conclusion.measures.push_back({"skip", with_skip});
  if (mlp_alone) conclusion.measures.push_back({"mlp", mlp_alone});
  return conclusion;
}

Experiment stack_experiment(const char* claim, bool causal, bool skip, const SpecList& list,
                            Conclusion (*conclude)(const Setup&, const std::vector<Json>&)) {
  return {claim, stack_options(causal, skip),
          [list](const Setup& setup) { return plan_stacks(setup, specs_of(setup, list)); },
          conclude};
}

}  // namespace

Experiment rank_collapse_experiment() {
  return stack_experiment("rank-collapse", false, false, rank_collapse_list,
                          conclude_rank_collapse);
}

Experiment masked_collapse_experiment() {
  return stack_experiment("masked-collapse", true, false, masked_list, conclude_masked);
}

Experiment skip_collapse_experiment() {
  return stack_experiment("skip-connections", false, true, skip_list, conclude_skip);
}

}  // namespace fathom::lab
