#include "lab/collapse/collapse_measure.h"

#include <algorithm>
#include <cmath>

#include "lab/collapse/double_double.h"
#include "lab/collapse/split_stack.h"
#include "lab/collapse/stack.h"
#include "lab/frame/result_json.h"

namespace fathom::lab {
namespace {

/// Where both methods still have ten digits of rho in common.
constexpr double kLog10Comparable = -25;

Json numbers(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values) json.push_back(finite_or_null(value));
  return json;
}

std::vector<double> numbers(const Json& json) {
  std::vector<double> values;
  for (const Json& value : json) {
    values.push_back(value.is_null() ? -std::numeric_limits<double>::infinity()
                                     : value.get<double>());
  }
  return values;
}

double log10_factor(const StackSpec& spec, const StackDraw& draw) {
  double beta = 0;
  for (const LayerWeights& layer : draw.layers) {
    for (const HeadWeights& head : layer.heads) {
      Matrix<double> transposed(head.key.columns, head.key.rows);
      for (std::size_t i = 0; i < head.key.rows; ++i) {
        for (std::size_t j = 0; j < head.key.columns; ++j) transposed.at(j, i) = head.key.at(i, j);
      }
      const SumNorms scores = sum_norms(product(head.query, transposed));
      const SumNorms values = sum_norms(product(head.value, head.output));
      beta = std::max(beta, scores.column * std::sqrt(values.column * values.row));
    }
  }
  return std::log10(4 * beta * static_cast<double>(spec.heads) /
                    std::sqrt(static_cast<double>(spec.head_size())));
}

std::vector<double> exponents(const CollapseRun& run) {
  std::vector<double> values;
  for (std::size_t l = 0; l + 1 < run.direct.size(); ++l) {
    const bool visible = run.rho(l) < -1 && run.rho(l + 1) > kLog10Floor;
    if (visible) values.push_back(run.rho(l + 1) / run.rho(l));
  }
  return values;
}

/// Decades of rho lost per layer over the second half of the layers.
double decades(const CollapseRun& run) {
  const std::size_t last = run.direct.size() - 1;
  const std::size_t middle = last / 2;
  return (run.rho(middle) - run.rho(last)) / static_cast<double>(last - middle);
}

double pooled_median(const std::vector<std::vector<double>>& by_seed,
                     std::span<const std::size_t> seeds) {
  std::vector<double> pooled;
  for (const std::size_t seed : seeds) {
    pooled.insert(pooled.end(), by_seed[seed].begin(), by_seed[seed].end());
  }
  return quartiles(pooled).median;
}

/// Whether the theorem covers such stacks.
bool bound_applies(const StackSpec& spec) {
  return spec.all_see_all() && !spec.skip && !spec.norm && !spec.mlp;
}

void count_bounds(const std::vector<CollapseRun>& runs, CollapseSummary& summary) {
  if (!bound_applies(summary.spec)) return;
  constexpr double kRounding = 1e-9;
  for (const CollapseRun& run : runs) {
    for (std::size_t l = 1; l < run.split.size(); ++l) {
      const double bound = log10_bound(run, l);
      if (bound >= 0) {
        ++summary.vacuous;
        continue;
      }
      ++summary.bounds;
      if (run.log10_residual[l] > bound + kRounding * std::fabs(bound)) ++summary.violations;
    }
  }
}

LayerLaw layer_law(const StackSpec& spec, const std::vector<CollapseRun>& runs, std::size_t layer) {
  std::vector<double> exponents;
  std::vector<double> residuals;
  std::vector<double> bounds;
  for (const CollapseRun& run : runs) {
    const double before = run.rho(layer - 1);
    const bool both = std::isfinite(before) && std::isfinite(run.rho(layer));
    if (both && before < -1) exponents.push_back(run.rho(layer) / before);
    residuals.push_back(run.log10_residual[layer]);
    const double bound = log10_bound(run, layer);
    if (bound_applies(spec) && bound < 0) bounds.push_back(bound);
  }
  LayerLaw law{quartiles(exponents), quartiles(residuals).median, {}, bounds.size()};
  if (!bounds.empty()) law.log10_bound = quartiles(bounds).median;
  return law;
}

Json layer_json(std::size_t layer, const LayerLaw& law, bool applies) {
  Json json{{"layer", layer},
            {"exponent", law.exponent.count == 0 ? Json() : finite_or_null(law.exponent.median)},
            {"count", law.exponent.count},
            {"log10_residual", finite_or_null(law.log10_residual)}};
  json["log10_bound"] = law.log10_bound ? finite_or_null(*law.log10_bound) : Json();
  if (applies) json["vacuous"] = !law.log10_bound.has_value();
  return json;
}

Json quartile_json(const Quartiles& quartiles) {
  return {{"q25", finite_or_null(quartiles.low)},
          {"median", finite_or_null(quartiles.median)},
          {"q75", finite_or_null(quartiles.high)}};
}

}  // namespace

double CollapseRun::rho(std::size_t layer) const {
  return direct[layer] > kLog10Floor ? direct[layer] : split[layer];
}

CollapseRun measure_collapse(const StackSpec& spec, std::uint64_t seed,
                             const std::function<void()>& look) {
  const StackDraw draw = draw_stack(spec, seed);
  CollapseRun run;
  run.direct = collapse_course<DoubleDouble>(spec, draw, look);
  const SplitCourse split = split_course(spec, draw, look);
  run.split = split.log10_rho;
  run.log10_residual = split.log10_residual;
  run.log10_factor = log10_factor(spec, draw);
  return run;
}

Json to_json(const CollapseRun& run) {
  return {{"direct", numbers(run.direct)},
          {"split", numbers(run.split)},
          {"log10_residual", numbers(run.log10_residual)},
          {"log10_factor", run.log10_factor}};
}

CollapseRun collapse_run(const Json& json) {
  return {numbers(json.at("direct")), numbers(json.at("split")), numbers(json.at("log10_residual")),
          json.at("log10_factor").get<double>()};
}

double log10_bound(const CollapseRun& run, std::size_t layer) {
  const double power = std::pow(3.0, static_cast<double>(layer));
  return (power - 1) / 2 * run.log10_factor + power * run.log10_residual[0];
}

CollapseSummary summarise(const StackSpec& spec, const std::vector<CollapseRun>& runs) {
  CollapseSummary summary;
  summary.spec = spec;
  std::vector<double> layers;
  std::vector<double> medians;
  for (std::size_t l = 0; l <= spec.layers; ++l) {
    std::vector<double> at;
    for (const CollapseRun& run : runs) {
      at.push_back(run.rho(l));
      if (run.direct[l] > kLog10Comparable) {
        summary.largest_difference =
            std::max(summary.largest_difference, std::fabs(run.direct[l] - run.split[l]));
      }
    }
    summary.log10_rho.push_back(quartiles(at));
    if (l == 0) continue;
    summary.layers.push_back(layer_law(spec, runs, l));
    layers.push_back(static_cast<double>(l));
    medians.push_back(summary.log10_rho.back().median);
  }
  std::vector<std::vector<double>> exponents_by_seed;
  std::vector<std::vector<double>> decades_by_seed;
  std::vector<double> pooled;
  std::vector<double> lost;
  std::vector<double> last;
  for (const CollapseRun& run : runs) {
    exponents_by_seed.push_back(exponents(run));
    pooled.insert(pooled.end(), exponents_by_seed.back().begin(), exponents_by_seed.back().end());
    lost.push_back(decades(run));
    decades_by_seed.push_back({lost.back()});
    last.push_back(run.rho(spec.layers) / run.rho(spec.layers - 1));
  }
  summary.exponent = quartiles(pooled);
  summary.exponent_interval =
      bootstrap_interval(runs.size(), [&](auto s) { return pooled_median(exponents_by_seed, s); });
  summary.decades = quartiles(lost);
  summary.decades_interval =
      bootstrap_interval(runs.size(), [&](auto s) { return pooled_median(decades_by_seed, s); });
  summary.last_exponent = quartiles(last).median;
  summary.line = fit_line(layers, medians);
  count_bounds(runs, summary);
  return summary;
}

Json to_json(const CollapseSummary& summary) {
  Json json;
  json["log10_rho"] = Json::array();
  for (std::size_t l = 0; l < summary.log10_rho.size(); ++l) {
    Json row{{"layer", l}};
    row.update(quartile_json(summary.log10_rho[l]));
    json["log10_rho"].push_back(std::move(row));
  }
  json["exponent"] = quartile_json(summary.exponent);
  json["exponent"]["count"] = summary.exponent.count;
  json["exponent"]["median_interval"] = {finite_or_null(summary.exponent_interval.low),
                                         finite_or_null(summary.exponent_interval.high)};
  json["layers"] = Json::array();
  for (std::size_t l = 0; l < summary.layers.size(); ++l) {
    json["layers"].push_back(layer_json(l + 1, summary.layers[l], bound_applies(summary.spec)));
  }
  json["decades_per_layer"] = quartile_json(summary.decades);
  json["decades_per_layer"]["median_interval"] = {finite_or_null(summary.decades_interval.low),
                                                  finite_or_null(summary.decades_interval.high)};
  json["last_exponent"] = finite_or_null(summary.last_exponent);
  json["line"] = {{"slope", finite_or_null(summary.line.slope)},
                  {"r_squared", finite_or_null(summary.line.r_squared)}};
  const bool applies = summary.bounds + summary.vacuous > 0;
  json["bound"] = {{"applies", applies},
                   {"checked", summary.bounds},
                   {"vacuous", summary.vacuous},
                   {"violations", summary.violations}};
  json["methods_differ_by"] = summary.largest_difference;
  return json;
}

}  // namespace fathom::lab
