#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/units.h"
#include "lab/frame/options.h"
#include "lab/hops/hop_experiments.h"
#include "lab/hops/hop_network.h"

namespace fathom::lab {
namespace {

constexpr int kHopVersion = 1;
constexpr std::size_t kMaxHops = 16;
constexpr std::size_t kSequencesPerPart = 5000;
/// At score gaps of 1, softmax is hard attention to within n e^-32.
constexpr double kBeta = 32;
/// A multiply-add of the integer network, measured.
constexpr double kHopSecondsPerOperation = 1e-9;

struct HopSizes {
  std::size_t length, alphabet, sequences, engine_sequences, short_sequences;
};

HopSizes sizes_of(const Setup& setup) {
  HopSizes sizes{};
  sizes.length = setup.size("length");
  sizes.alphabet = setup.size("alphabet");
  sizes.sequences = setup.size("sequences");
  sizes.engine_sequences = std::min<std::size_t>(sizes.sequences, setup.quick ? 128 : 1024);
  sizes.short_sequences = std::min<std::size_t>(sizes.sequences, 1000);
  return sizes;
}

std::vector<std::size_t> hops_of(const Setup& setup) {
  const std::size_t one = setup.size("hops");
  if (one != 0) return {one};
  std::vector<std::size_t> all;
  for (std::size_t k = 1; k <= kMaxHops; ++k) all.push_back(k);
  return all;
}

/// Errors of hard attention over sequences [first, end).
Json count_hard(const HopNetwork& network, std::size_t hops, std::uint64_t seed, std::size_t first,
                std::size_t end, const Ticker& tick) {
  std::size_t errors = 0;
  std::size_t answered = 0;  // positions where the hop exists
  std::size_t missed = 0;    // errors among them
  for (std::size_t index = first; index < end; ++index) {
    const Characters sequence = hop_sequence(network.length, network.alphabet, seed, index);
    const std::vector<int> truth = hop_answers(sequence, hops);
    const std::vector<int> found = run_hard(network, sequence);
    for (std::size_t i = 0; i < truth.size(); ++i) {
      errors += truth[i] != found[i] ? 1 : 0;
      answered += truth[i] != kNoHop ? 1 : 0;
      missed += truth[i] != kNoHop && truth[i] != found[i] ? 1 : 0;
    }
    if (index % 64 == 0) {
      tick(static_cast<double>(index - first) / static_cast<double>(end - first));
    }
  }
  return {{"positions", (end - first) * network.length},
          {"answered", answered},
          {"errors", errors},
          {"missed", missed}};
}

Json count_engine(const HopNetwork& network, std::size_t hops, std::size_t sequences,
                  const engine::Device& device) {
  std::vector<Characters> texts;
  for (std::size_t index = 0; index < sequences; ++index) {
    texts.push_back(hop_sequence(network.length, network.alphabet, 1, index));
  }
  const auto found = run_engine(network, texts, kBeta, device);
  std::size_t errors = 0;
  for (std::size_t s = 0; s < texts.size(); ++s) {
    const std::vector<int> truth = hop_answers(texts[s], hops);
    for (std::size_t i = 0; i < truth.size(); ++i) errors += truth[i] != found[s][i] ? 1 : 0;
  }
  return {{"positions", sequences * network.length}, {"errors", errors}};
}

double operations(const HopSizes& sizes, std::size_t layers) {
  const auto n = static_cast<double>(sizes.length + 1);
  const auto width = static_cast<double>(7 + 3 * sizes.alphabet);
  return static_cast<double>(layers) * n * (n * 2 + width * 20);
}

std::string key_of(const char* what, std::size_t hops, std::size_t layers, const HopSizes& sizes) {
  return fmt::format("{} v{} k={} layers={} length={} alphabet={}", what, kHopVersion, hops, layers,
                     sizes.length, sizes.alphabet);
}

void add_parts(const Setup& setup, const HopSizes& sizes, std::size_t hops,
               std::vector<Part>& parts) {
  const std::size_t layers = hop_depth(hops);
  const double cost = operations(sizes, layers);
  const auto build = [hops, sizes](std::size_t depth) {
    return build_hop_network(hops, depth, sizes.length, sizes.alphabet);
  };
  for (std::size_t first = 0; first < sizes.sequences; first += kSequencesPerPart) {
    const std::size_t end = std::min(first + kSequencesPerPart, sizes.sequences);
    parts.push_back({key_of("hard hops", hops, layers, sizes) + fmt::format(" {}-{}", first, end),
                     cost * static_cast<double>(end - first), [=](const Ticker& tick) {
                       return count_hard(build(layers), hops, 1, first, end, tick);
                     }});
  }
  parts.push_back({key_of("engine hops", hops, layers, sizes) +
                       fmt::format(" {} beta={} {}", sizes.engine_sequences, kBeta,
                                   setup.device.kind == engine::DeviceKind::cuda ? "cuda" : "cpu"),
                   cost * static_cast<double>(sizes.engine_sequences),
                   [=, device = setup.device](const Ticker&) {
                     return count_engine(build(layers), hops, sizes.engine_sequences, device);
                   }});
  parts.push_back(
      {key_of("hard hops", hops, layers - 1, sizes) + fmt::format(" 0-{}", sizes.short_sequences),
       cost * static_cast<double>(sizes.short_sequences), [=](const Ticker& tick) {
         return count_hard(build(layers - 1), hops, 1, 0, sizes.short_sequences, tick);
       }});
}

std::vector<Part> plan_hops(const Setup& setup) {
  const HopSizes sizes = sizes_of(setup);
  double total = 0;
  for (const std::size_t hops : hops_of(setup)) {
    total += operations(sizes, hop_depth(hops)) *
             static_cast<double>(sizes.sequences + 2 * sizes.engine_sequences);
  }
  const auto n = static_cast<double>(sizes.length);
  check_cost(setup,
             fmt::format("{} sequences of {} characters",
                         format_whole(static_cast<std::int64_t>(sizes.sequences)), sizes.length),
             total * kHopSecondsPerOperation, 32 * n * 400 + 8 * n * 100);
  std::vector<Part> parts;
  for (const std::size_t hops : hops_of(setup)) add_parts(setup, sizes, hops, parts);
  return parts;
}

/// What the parts of one k found.
struct HopCount {
  std::size_t errors = 0;
  std::size_t positions = 0;
  std::size_t engine_errors = 0;
  std::size_t engine_positions = 0;
  double short_error = 0;  // share of wrong answers with one layer fewer
};

HopCount count_hops(const std::vector<Json>& results, std::size_t hard_parts, std::size_t& part) {
  HopCount count;
  for (std::size_t p = 0; p < hard_parts; ++p, ++part) {
    count.errors += results[part].at("errors").get<std::size_t>();
    count.positions += results[part].at("positions").get<std::size_t>();
  }
  const Json& engine_result = results[part++];
  count.engine_errors = engine_result.at("errors").get<std::size_t>();
  count.engine_positions = engine_result.at("positions").get<std::size_t>();
  const Json& short_result = results[part++];
  const auto answered = short_result.at("answered").get<double>();
  count.short_error = answered > 0 ? short_result.at("missed").get<double>() / answered : 1;
  return count;
}

Conclusion conclude_hops(const Setup& setup, const std::vector<Json>& results) {
  const HopSizes sizes = sizes_of(setup);
  const std::size_t hard_parts = (sizes.sequences + kSequencesPerPart - 1) / kSequencesPerPart;
  Conclusion conclusion;
  ExhibitTable table{
      fmt::format("Errors, {} characters of an alphabet of {}", sizes.length, sizes.alphabet),
      {"k", "layers", "hard attention", "of positions", "softmax on the engine", "of positions",
       "one layer less"},
      {}};
  double hard_errors = 0;
  double engine_errors = 0;
  double deeper = 0;
  double least_short = 1;
  ChartSeries depth_series{"layers of the network", {}};
  std::size_t part = 0;
  conclusion.data["hops"] = Json::array();
  for (const std::size_t hops : hops_of(setup)) {
    const HopCount count = count_hops(results, hard_parts, part);
    hard_errors += static_cast<double>(count.errors);
    engine_errors += static_cast<double>(count.engine_errors);
    const std::size_t layers = hop_depth(hops);
    const auto claimed =
        static_cast<std::size_t>(std::floor(std::log2(static_cast<double>(hops)))) + 2;
    deeper += layers != claimed ? 1 : 0;
    least_short = std::min(least_short, count.short_error);
    conclusion.data["hops"].push_back({{"k", hops},
                                       {"layers", layers},
                                       {"errors", count.errors},
                                       {"positions", count.positions},
                                       {"engine_errors", count.engine_errors},
                                       {"engine_positions", count.engine_positions},
                                       {"one_layer_less", count.short_error}});
    table.rows.push_back({std::to_string(hops), std::to_string(layers),
                          std::to_string(count.errors),
                          format_whole(static_cast<std::int64_t>(count.positions)),
                          std::to_string(count.engine_errors),
                          format_whole(static_cast<std::int64_t>(count.engine_positions)),
                          fmt::format("{:.0f} %", 100 * count.short_error)});
    depth_series.dots.push_back({static_cast<double>(hops), static_cast<double>(layers)});
  }
  conclusion.data["width"] = 7 + 3 * sizes.alphabet;
  conclusion.data["beta"] = kBeta;
  conclusion.measures = {{"hard", hard_errors},
                         {"softmax", engine_errors},
                         {"depth", deeper},
                         {"shorter", least_short}};
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(
      {"Layers that suffice", "hops k", "layers", true, false, {std::move(depth_series)}});
  if (setup.own && results.back().at("answered") == 0) {
    conclusion.notes.push_back("no position of these sequences has so many hops");
  }
  conclusion.notes.push_back(fmt::format(
      "width {} whatever k; softmax at inverse temperature {:g} on scores that are whole numbers "
      "puts at most {:.0e} of a row's weight beside the wanted position; one layer less: share of "
      "wrong answers where the hop exists",
      7 + 3 * sizes.alphabet, kBeta, static_cast<double>(sizes.length) * std::exp(-kBeta)));
  return conclusion;
}

}  // namespace

Experiment hop_experiment() {
  Option sequences = integer_option("sequences", 100000, "N", "Random sequences", 1, 1000000000);
  sequences.quick = 1000;
  return {"k-hop",
          {integer_option("hops", 0, "K", "One number of hops; 0: 1 to 16", 0, 1000000),
           integer_option("length", 100, "N", "Characters of a sequence", 1, 4000),
           integer_option("alphabet", 4, "N", "Different characters", 2, 64), sequences},
          plan_hops,
          conclude_hops,
          /*on_engine=*/true};
}

}  // namespace fathom::lab
