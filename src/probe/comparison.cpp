#include "probe/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/json_reader.h"
#include "core/json_text.h"
#include "fits/statistics.h"
#include "probe/layer_class.h"

namespace fathom::probe {
namespace {

using Json = nlohmann::ordered_json;

struct LayerCost {
  std::int64_t layer;
  double cost;
};

/// One of the two probes, as far as the sentences need it.
struct Side {
  std::string name, text;
  std::int64_t layers = 0, vocabulary = 0, tokens = 0;
  std::optional<double> loss, low, high, bits;
  std::vector<LayerCost> costs;                   // by cost; empty where there is no loss
  std::vector<std::pair<double, double>> greedy;  // share of the layers cut, loss
};

std::optional<double> number_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return {};
  return found->get<double>();
}

Side side_of(const Json& probe) {
  Side side;
  const Json& model = probe.at("model");
  side.name = model.at("name");
  side.text = probe.at("text");
  side.layers = model.at("layers");
  side.vocabulary = model.at("vocabulary");
  side.tokens = probe.at("tokens");
  side.loss = number_at(probe, "loss");
  side.bits = number_at(probe, "bits_per_byte");
  const Json& interval = probe.at("loss_interval");
  if (interval.is_array() && interval.size() == 2 && interval[0].is_number() &&
      interval[1].is_number()) {
    side.low = interval[0];
    side.high = interval[1];
  }
  for (const Json& layer : probe.at("layers")) {
    if (const auto cost = number_at(layer, "removal")) {
      side.costs.push_back({layer.at("layer"), *cost});
    }
  }
  std::sort(side.costs.begin(), side.costs.end(),
            [](const LayerCost& a, const LayerCost& b) { return a.cost < b.cost; });
  for (const Json& point : probe.at("greedy")) {
    const auto kept = number_at(point, "kept"), loss = number_at(point, "loss");
    if (kept && loss) side.greedy.emplace_back(1 - *kept / static_cast<double>(side.layers), *loss);
  }
  return side;
}

std::string with_interval(const Side& side) {
  if (!side.low || !side.high) return fmt::format("{:.3f}", *side.loss);
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", *side.loss, *side.low, *side.high);
}

void say_losses(const Side& a, const Side& b, std::vector<std::string>& out) {
  if (a.text != b.text) {
    out.push_back(fmt::format(
        "{} was measured on {}, {} on {}: neither losses nor costs are of the same text.", a.name,
        a.text, b.name, b.text));
    return;
  }
  if (a.bits && b.bits) {
    out.push_back(fmt::format("On {}, {} needs {:.3f} bits per byte and {} {:.3f}.", a.text, a.name,
                              *a.bits, b.name, *b.bits));
    return;
  }
  if (!a.loss || !b.loss) return;
  std::string sentence = fmt::format("On {}, {} loses {} nats per token and {} {}.", a.text, a.name,
                                     with_interval(a), b.name, with_interval(b));
  if (a.vocabulary != b.vocabulary) {
    sentence += " Their tokens differ, so these numbers do not compare.";
  }
  out.push_back(std::move(sentence));
}

double median_cost(const Side& side) {
  std::vector<double> costs;
  for (const LayerCost& each : side.costs) costs.push_back(each.cost);
  return fits::quantile(costs, 0.5);
}

std::string spread(const Side& side) {
  return fmt::format("{:.4f} (layer {}) to {:.3f} (layer {}), median {:.3f}",
                     side.costs.front().cost, side.costs.front().layer, side.costs.back().cost,
                     side.costs.back().layer, median_cost(side));
}

std::string cheap_count(const Side& side) {
  const auto cheap = std::count_if(side.costs.begin(), side.costs.end(),
                                   [](const LayerCost& each) { return each.cost < kCheapCost; });
  return fmt::format("{} of {}", cheap, side.layers);
}

void say_costs(const Side& a, const Side& b, std::vector<std::string>& out) {
  if (a.costs.empty() || b.costs.empty()) return;
  out.push_back(fmt::format("Removing one layer costs {} {} nats per token, {} {}.", a.name,
                            spread(a), b.name, spread(b)));
  out.push_back(fmt::format("{} layers of {} and {} of {} cost less than {} nats each.",
                            cheap_count(a), a.name, cheap_count(b), b.name, kCheapCost));
}

/// The cost at a share of the layers, between the points of the curve.
std::optional<double> cut_cost(const Side& side, double share) {
  if (side.greedy.empty() || share > side.greedy.back().first + 1e-9) return {};
  for (std::size_t i = 1; i < side.greedy.size(); ++i) {
    const auto [before, low] = side.greedy[i - 1];
    const auto [after, high] = side.greedy[i];
    if (after + 1e-9 < share) continue;
    const double part = std::clamp((share - before) / (after - before), 0.0, 1.0);
    return low + part * (high - low) - side.greedy.front().second;
  }
  return {};
}

}  // namespace

Comparison compare_probes(const Json& first, const Json& second) {
  Side a, b;
  try {
    a = side_of(first);
    b = side_of(second);
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("not the JSON of a probe: {}", json_problem(error)));
  }
  if (a.name == b.name) {
    a.name += " (A)";
    b.name += " (B)";
  }
  Comparison result;
  say_losses(a, b, result.sentences);
  say_costs(a, b, result.sentences);
  for (const double share : {0.125, 0.25, 0.5}) {
    const ComparedCut cut{share, cut_cost(a, share), cut_cost(b, share)};
    if (cut.a || cut.b) result.cuts.push_back(cut);
    if (cut.a && cut.b && share == 0.25) {
      result.sentences.push_back(fmt::format(
          "Cutting a quarter of the layers greedily, nothing trained again, costs {} {:.3f} and {} "
          "{:.3f} nats per token.",
          a.name, *cut.a, b.name, *cut.b));
    }
  }
  return result;
}

void write_comparison(const Json& a, const Json& b, Json& document) {
  const Comparison comparison = compare_probes(a, b);
  document["sentences"] = comparison.sentences;
  document["cuts"] = Json::array();
  for (const ComparedCut& cut : comparison.cuts) {
    document["cuts"].push_back(
        {{"share", cut.share}, {"a", number_or_null(cut.a)}, {"b", number_or_null(cut.b)}});
  }
  document["a"] = a;
  document["b"] = b;
}

}  // namespace fathom::probe
