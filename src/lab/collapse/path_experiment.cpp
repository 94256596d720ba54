#include <fmt/format.h>

#include <cmath>

#include "core/units.h"
#include "lab/collapse/collapse_experiments.h"
#include "lab/collapse/path_decomposition.h"
#include "lab/frame/options.h"

namespace fathom::lab {
namespace {

constexpr int kPathVersion = 1;
/// One multiply-add of 106 bits in a product of matrices, measured.
constexpr double kPathSecondsPerOperation = 7e-9;

StackSpec path_spec(const Setup& setup) {
  StackSpec spec;
  spec.tokens = setup.size("tokens");
  spec.width = setup.size("width");
  spec.heads = setup.size("heads");
  spec.layers = setup.size("layers");
  spec.scale = setup.number("scale");
  spec.causal = setup.text("mask") == "causal";
  spec.skip = true;
  validate(spec);
  return spec;
}

std::vector<Part> plan_paths(const Setup& setup) {
  const StackSpec spec = path_spec(setup);
  const double paths =
      std::pow(static_cast<double>(spec.heads) + 1, static_cast<double>(spec.layers));
  const auto n = static_cast<double>(spec.tokens);
  const auto d = static_cast<double>(spec.width);
  const auto size = static_cast<double>(spec.head_size());
  // Paths share their prefixes, so there are about as many passes through a head as paths.
  const double seconds = paths * (2 * n * d * size + n * n * size) *
                         static_cast<double>(setup.size("seeds")) * kPathSecondsPerOperation;
  check_cost(setup, fmt::format("{} paths per seed", format_significant(paths, 3)), seconds, 0);
  std::vector<Part> parts;
  for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
    parts.push_back({fmt::format("paths v{} {} seed={}", kPathVersion, spec.key(), seed), 1,
                     [spec, seed](const Ticker& tick) {
                       const PathDecomposition found =
                           decompose_paths(spec, draw_stack(spec, seed), tick);
                       Json json{{"relative_error", found.relative_error}};
                       for (const PathLength& length : found.lengths) {
                         json["paths"].push_back(length.paths);
                         json["relative_residual"].push_back(length.relative_residual);
                       }
                       return json;
                     }});
  }
  return parts;
}

Conclusion conclude_paths(const Setup& setup, const std::vector<Json>& results) {
  const StackSpec spec = path_spec(setup);
  Conclusion conclusion;
  double error = 0;
  for (const Json& result : results) {
    error = std::max(error, result.at("relative_error").get<double>());
  }
  ExhibitTable table{
      "Paths by the number of heads they pass", {"length", "paths", "mean relative residual"}, {}};
  ChartSeries series{"mean over paths and seeds", {}};
  std::size_t rises = 0;
  double previous = 0;
  conclusion.data["lengths"] = Json::array();
  for (std::size_t length = 0; length <= spec.layers; ++length) {
    double mean = 0;
    for (const Json& result : results) {
      mean += result.at("relative_residual").at(length).get<double>() /
              static_cast<double>(results.size());
    }
    if (length > 0 && mean >= previous) ++rises;
    previous = mean;
    const auto paths = results.front().at("paths").at(length).get<std::size_t>();
    conclusion.data["lengths"].push_back(
        {{"length", length}, {"paths", paths}, {"relative_residual", mean}});
    table.rows.push_back(
        {std::to_string(length), std::to_string(paths), format_significant(mean, 4)});
    series.dots.push_back({static_cast<double>(length), mean});
  }
  conclusion.data["relative_error"] = error;
  conclusion.measures = {{"sum", error}, {"falls", static_cast<double>(rises)}};
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back({"Long paths lose the tokens",
                               "heads on the path",
                               "relative residual",
                               false,
                               true,
                               {std::move(series)}});
  return conclusion;
}

}  // namespace

Experiment path_length_experiment() {
  return {
      "path-lengths",
      {integer_option("tokens", 16, "N", "Tokens n", 2, 4096),
       integer_option("width", 32, "D", "Width d", 1, 4096),
       integer_option("heads", 2, "H", "Heads of size d/H", 1, 64),
       number_option("scale", 1, "S", "Query and key weights have deviation S / sqrt(d)", 0, 1e6),
       text_option("mask", "none", "NAME", "Which tokens a token sees", {"none", "causal"}),
       integer_option("layers", 6, "L", "Layers", 1, 24), seeds_option(16, 4)},
      plan_paths,
      conclude_paths};
}

}  // namespace fathom::lab
