#include <fmt/format.h>

#include "core/error.h"
#include "lab/frame/options.h"
#include "lab/hops/connectivity.h"
#include "lab/hops/hop_experiments.h"

namespace fathom::lab {
namespace {

constexpr int kConnectivityVersion = 1;

std::vector<std::size_t> vertex_counts(const Setup& setup) {
  const std::size_t one = setup.size("vertices");
  if (one == 0) return {8, 16, 32, 64, 128};
  if (one % 2 != 0 || one < 6) {
    throw ConfigError(
        fmt::format("--vertices must be even and at least 6 (two cycles of 3), not {}", one));
  }
  return {one};
}

Json count_errors(std::size_t vertices, std::size_t layers, std::size_t graphs,
                  const Ticker& tick) {
  std::size_t errors = 0;
  for (std::size_t index = 0; index < graphs; ++index) {
    tick(static_cast<double>(index) / static_cast<double>(graphs));
    for (const bool two : {false, true}) {
      const bool connected = run_connectivity(random_cycles(vertices, two, 1, index), layers);
      errors += connected == two ? 1 : 0;
    }
  }
  return {{"graphs", 2 * graphs}, {"errors", errors}};
}

std::vector<Part> plan_connectivity(const Setup& setup) {
  const std::size_t graphs = setup.size("graphs");
  std::vector<Part> parts;
  double seconds = 0;
  for (const std::size_t vertices : vertex_counts(setup)) {
    const std::size_t depth = connectivity_depth(vertices);
    for (const std::size_t layers : {depth, depth - 2}) {
      const double cost = static_cast<double>(vertices * vertices * layers * graphs) * 3e-9;
      seconds += cost;
      parts.push_back(
          {fmt::format("connectivity v{} vertices={} layers={} graphs={}", kConnectivityVersion,
                       vertices, layers, graphs),
           cost, [=](const Ticker& tick) { return count_errors(vertices, layers, graphs, tick); }});
    }
  }
  check_cost(setup, fmt::format("{} graphs", 2 * graphs * parts.size()), seconds, 0);
  return parts;
}

Conclusion conclude_connectivity(const Setup& setup, const std::vector<Json>& results) {
  Conclusion conclusion;
  ExhibitTable table{"One cycle or two, by pointer doubling",
                     {"vertices", "layers", "errors", "two layers less", "errors", "of graphs"},
                     {}};
  ExhibitChart chart{"Layers of pointer doubling",       "vertices", "layers", true, false,
                     {{"layers that make no error", {}}}};
  double errors = 0;
  std::size_t part = 0;
  conclusion.data["graphs"] = Json::array();
  for (const std::size_t vertices : vertex_counts(setup)) {
    const Json& enough = results[part++];
    const Json& less = results[part++];
    const std::size_t depth = connectivity_depth(vertices);
    errors += enough.at("errors").get<double>();
    if (enough.at("errors") == 0) {
      chart.series[0].dots.push_back({static_cast<double>(vertices), static_cast<double>(depth)});
    }
    conclusion.data["graphs"].push_back({{"vertices", vertices},
                                         {"layers", depth},
                                         {"errors", enough.at("errors")},
                                         {"fewer_layers_errors", less.at("errors")},
                                         {"count", enough.at("graphs")}});
    table.rows.push_back({std::to_string(vertices), std::to_string(depth),
                          enough.at("errors").dump(), std::to_string(depth - 2),
                          less.at("errors").dump(), enough.at("graphs").dump()});
  }
  conclusion.measures = {{"enough", errors}, {"needed", {}}};
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
  conclusion.notes.push_back(
      "that less depth is not enough is conditional: with width m H = O(D^(1-epsilon)) depth must "
      "be Omega(log D) for graphs of diameter D >= n^epsilon, if the one-cycle/two-cycle "
      "conjecture of massively parallel computation holds; the row with fewer layers shows this "
      "network only");
  return conclusion;
}

}  // namespace

Experiment connectivity_experiment() {
  Option graphs = integer_option("graphs", 1000, "N", "Random graphs of each kind", 1, 10000000);
  graphs.quick = 100;
  return {"connectivity",
          {integer_option("vertices", 0, "N", "Vertices; 0: 8 to 128", 0, 100000), graphs},
          plan_connectivity,
          conclude_connectivity};
}

}  // namespace fathom::lab
