#include "lab/perturbation/perturbation_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.h"
#include "core/units.h"
#include "fits/statistics.h"
#include "lab/frame/options.h"
#include "lab/frame/statistics.h"
#include "lab/perturbation/omega.h"

namespace fathom::lab {
namespace {

constexpr int kPerturbationVersion = 1;
/// Seconds for a multiply-add of a stack on one core, measured; plans and weights included.
constexpr double kPerturbationSecondsPerOperation = 1e-9;
constexpr double kEpsilon = 1e-3;

std::vector<std::size_t> depths_of(const Setup& setup) {
  const std::size_t one = setup.size("layers");
  if (one != 0) return {one};
  return {3, 6, 12, 24, 60};
}

StackShape shape_of(const Setup& setup, std::size_t layers) {
  StackShape shape;
  shape.layers = layers;
  shape.width = setup.size("width");
  shape.heads = setup.size("heads");
  shape.tokens = setup.size("tokens");
  if (shape.width % shape.heads != 0) {
    throw ConfigError(fmt::format("--heads must divide --width: {} does not divide {}", shape.heads,
                                  shape.width));
  }
  return shape;
}

/// The name in records, and of the criterion on its slope.
const char* criterion_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::post:
      return "post";
    case Scheme::pre:
      return "pre";
    case Scheme::admin:
      return "profiled";
    case Scheme::closed:
      return "closed";
    case Scheme::deepnorm:
      return "deepnorm";
  }
  throw InternalError("unknown scheme");
}

double mean_square_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return sum / static_cast<double>(a.size());
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

/// One scheme with its weights, the direction they move in, and the inputs.
struct Trial {
  StackShape shape;
  StackWeights weights, direction;
  std::vector<float> inputs;
};

Json measure_scheme(Scheme scheme, const Trial& trial, const engine::Device& device) {
  const StackShape& shape = trial.shape;
  Json json;
  std::vector<double> omegas = fixed_omegas(scheme, shape.layers);
  if (scheme == Scheme::admin) {
    std::vector<double> variances;
    omegas = profile_omegas(shape, trial.weights, trial.inputs, device, &variances);
    double sum = 1;
    for (std::size_t i = 0; i + 1 < variances.size(); ++i) sum += variances[i];
    json["last_omega"] = omegas.back();
    json["predicted_omega"] = std::sqrt(sum);
  }
  ResidualStack stack(shape, omegas, device);
  const std::vector<float> base = stack.run(trial.weights, trial.inputs);
  const std::vector<float> moved =
      stack.run(perturbed(trial.weights, trial.direction, kEpsilon), trial.inputs);
  json["change"] = mean_square_difference(base, moved) / (kEpsilon * kEpsilon);
  if (!omegas.empty()) {
    const FoldedStack folded = fold_omegas(trial.weights, trial.inputs, omegas);
    ResidualStack plain(shape, {}, device);
    json["fold_difference"] =
        largest_difference(base, plain.run(folded.weights, folded.inputs, folded.gains));
  }
  return json;
}

/// All schemes with the same draws.
Json measure(const StackShape& base, std::uint64_t seed, const engine::Device& device,
             const Ticker& tick) {
  constexpr std::uint64_t kWeights = 0x77656967687473;  // "weights"
  constexpr std::uint64_t kDirection = 0x6d6f7665;      // "move"
  Trial trial{base, draw_weights(base, seed, kWeights), draw_weights(base, seed, kDirection),
              draw_inputs(base, seed)};
  Json json;
  for (const Scheme scheme : kEnumValues<Scheme>) {
    tick(static_cast<double>(scheme) / static_cast<double>(kEnumCount<Scheme>));
    trial.shape.norm = scheme == Scheme::pre ? NormPlace::pre : NormPlace::post;
    if (scheme == Scheme::deepnorm) {  // the last scheme: its weights may stay scaled
      const double gain = branch_gain(scheme, base.layers);
      trial.weights = with_branch_gain(base, std::move(trial.weights), gain);
      trial.direction = with_branch_gain(base, std::move(trial.direction), gain);
    }
    json[criterion_of(scheme)] = measure_scheme(scheme, trial, device);
  }
  return json;
}

std::vector<Part> plan_admin(const Setup& setup) {
  std::vector<Part> parts;
  double operations = 0;
  double bytes = 0;
  for (const std::size_t layers : depths_of(setup)) {
    const StackShape shape = shape_of(setup, layers);
    const auto d = static_cast<double>(shape.width);
    const double cost =
        static_cast<double>(layers) * 12 * d * d * (200 + 15 * static_cast<double>(shape.rows()));
    bytes = std::max(bytes, static_cast<double>(setup.threads) * static_cast<double>(layers) *
                                (12 * d * d * 40 + 60 * static_cast<double>(shape.elements())));
    for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
      operations += cost;
      parts.push_back(
          {fmt::format("perturbation v{} layers={} width={} heads={} tokens={} seed={} {}",
                       kPerturbationVersion, layers, shape.width, shape.heads, shape.tokens, seed,
                       setup.device.kind == engine::DeviceKind::cuda ? "cuda" : "cpu"),
           cost, [shape, seed, device = setup.device](const Ticker& tick) {
             return measure(shape, seed, device, tick);
           }});
    }
  }
  check_cost(setup,
             fmt::format("{} stacks of up to {} layers", kEnumCount<Scheme> * parts.size(),
                         depths_of(setup).back()),
             operations * kPerturbationSecondsPerOperation, bytes);
  return parts;
}

/// Mean and 95 % interval of Student's t.
struct MeanInterval {
  double mean = 0;
  Interval interval;
};

MeanInterval mean_interval(const std::vector<double>& values) {
  MeanInterval result;
  result.mean = fits::mean(values);
  result.interval = {result.mean, result.mean};
  if (values.size() < 2) return result;
  const auto n = static_cast<double>(values.size());
  const double half = fits::student_quantile(0.975, n - 1) * fits::deviation(values) / std::sqrt(n);
  result.interval = {result.mean - half, result.mean + half};
  return result;
}

/// changes[depth][seed].
using Changes = std::vector<std::vector<double>>;

std::vector<double> slopes(const Changes& changes, const std::vector<std::size_t>& depths) {
  std::vector<double> by_seed;
  for (std::size_t seed = 0; seed < changes.front().size(); ++seed) {
    std::vector<double> x;
    std::vector<double> y;
    for (std::size_t d = 0; d < depths.size(); ++d) {
      x.push_back(std::log(2 * static_cast<double>(depths[d])));
      y.push_back(std::log(changes[d][seed]));
    }
    by_seed.push_back(fit_line(x, y).slope);
  }
  return by_seed;
}

/// What the networks of one scheme and depth found; `worst` keeps the largest deviations of all.
struct Deviations {
  double omega = 0;
  double fold = 0;
};

std::vector<double> changes_of(Scheme scheme, std::span<const Json> results, Deviations& worst) {
  std::vector<double> changes;
  for (const Json& result : results) {
    const Json& found = result.at(criterion_of(scheme));
    changes.push_back(found.at("change").get<double>());
    if (found.contains("last_omega")) {
      const double predicted = found["predicted_omega"].get<double>();
      const double ratio = found["last_omega"].get<double>() / predicted;
      worst.omega = std::max(worst.omega, std::fabs(ratio - 1));
    }
    if (found.contains("fold_difference")) {
      worst.fold = std::max(worst.fold, found["fold_difference"].get<double>());
    }
  }
  return changes;
}

Conclusion conclude_admin(const Setup& setup, const std::vector<Json>& results) {
  const std::vector<std::size_t> depths = depths_of(setup);
  const std::size_t seeds = setup.size("seeds");
  Conclusion conclusion;
  ExhibitTable table{"Mean squared output change over epsilon squared", {"scheme"}, {}};
  for (const std::size_t layers : depths) {
    table.columns.push_back(fmt::format("{} sublayers", 2 * layers));
  }
  table.columns.push_back("log-log slope (95 %)");
  ExhibitChart chart{"How much the output moves when all weights do",
                     "sublayers",
                     "output change / epsilon^2",
                     true,
                     true,
                     {}};
  Deviations worst;
  conclusion.data["schemes"] = Json::array();
  for (const Scheme scheme : kEnumValues<Scheme>) {
    Changes changes;
    ChartSeries series{name_of(scheme), {}};
    std::vector<std::string> row{name_of(scheme)};
    Json entry{{"scheme", name_of(scheme)}, {"changes", Json::array()}};
    for (std::size_t depth = 0; depth < depths.size(); ++depth) {
      const auto of_depth = std::span<const Json>(results).subspan(depth * seeds, seeds);
      changes.push_back(changes_of(scheme, of_depth, worst));
      const MeanInterval mean = mean_interval(changes.back());
      entry["changes"].push_back({{"sublayers", 2 * depths[depth]},
                                  {"mean", mean.mean},
                                  {"interval", {mean.interval.low, mean.interval.high}}});
      row.push_back(format_significant(mean.mean, 3));
      series.dots.push_back({2 * static_cast<double>(depths[depth]), mean.mean, mean.interval.low,
                             mean.interval.high});
    }
    if (depths.size() > 1) {
      const MeanInterval slope = mean_interval(slopes(changes, depths));
      entry["slope"] = slope.mean;
      entry["slope_interval"] = {slope.interval.low, slope.interval.high};
      row.push_back(fmt::format("{:.2f} ({:.2f} to {:.2f})", slope.mean, slope.interval.low,
                                slope.interval.high));
      conclusion.measures.push_back({criterion_of(scheme), slope.mean, slope.interval});
    }
    conclusion.data["schemes"].push_back(std::move(entry));
    table.rows.push_back(std::move(row));
    chart.series.push_back(std::move(series));
  }
  conclusion.data["epsilon"] = kEpsilon;
  conclusion.measures.push_back({"omega", worst.omega});
  conclusion.measures.push_back({"fold", worst.fold});
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
  conclusion.notes.push_back(fmt::format(
      "every weight gets epsilon = {:g} times a fresh Gaussian of its own scale; means and slopes "
      "over {} seeds with 95 % intervals of Student's t",
      kEpsilon, seeds));
  return conclusion;
}

}  // namespace

Experiment admin_experiment() {
  return {"admin",
          {integer_option("layers", 0, "L", "One depth; 0: 3, 6, 12, 24 and 60", 0, 1000),
           integer_option("width", 64, "D", "Width", 4, 4096),
           integer_option("heads", 4, "H", "Heads", 1, 256),
           integer_option("tokens", 16, "N", "Tokens", 1, 4096), seeds_option(16, 8)},
          plan_admin,
          conclude_admin,
          /*on_engine=*/true};
}

}  // namespace fathom::lab
