#include "probe/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/units.h"
#include "probe/layer_class.h"

namespace fathom::probe {
namespace {

using Layers = std::vector<std::int64_t>;

std::string cost_text(const Cost& cost) {
  const double half = (cost.high - cost.low) / 2;
  const int digits = std::isfinite(half) && half > 0
                         ? std::clamp(static_cast<int>(1 - std::floor(std::log10(half))), 2, 5)
                         : 4;
  return std::isfinite(half)
             ? fmt::format("{:.{}f} ± {:.{}f} nats", cost.mean, digits, half, digits)
             : fmt::format("{:.{}f} nats", cost.mean, digits);
}

std::string perplexity(double nats) {
  const double factor = std::exp(nats);
  return factor < 2 ? fmt::format("{:.1f} % {} perplexity", 100 * std::abs(factor - 1),
                                  factor < 1 ? "less" : "more")
                    : fmt::format("{:.3g} times the perplexity", factor);
}

Layers of_class(const ProbeResult& r, LayerClass cls) {
  Layers list;
  for (const LayerResult& layer : r.layers) {
    if (layer.cls == cls) list.push_back(layer.layer);
  }
  return list;
}

const LayerResult& cheapest(const ProbeResult& r) {
  return *std::min_element(r.layers.begin(), r.layers.end(), [](const auto& a, const auto& b) {
    return a.removal.mean < b.removal.mean;
  });
}

/// First: does any layer do nothing, or does every one earn its place?
void say_layers(const ProbeResult& r, std::vector<std::string>& out) {
  const Layers idle = of_class(r, LayerClass::idle), harmful = of_class(r, LayerClass::harmful),
               unknown = of_class(r, LayerClass::undecided);
  const LayerResult& least = cheapest(r);
  std::string capital;
  if (!idle.empty()) {
    capital = layers_text(idle);
    capital.front() = 'L';
    out.push_back(
        fmt::format("{} {} nothing measurable on this text: removing {} changes the loss "
                    "by less than {} nats.",
                    capital, idle.size() == 1 ? "does" : "do",
                    idle.size() == 1 ? "it" : "any one of them", kIdleCost));
  }
  if (!harmful.empty()) {
    capital = layers_text(harmful);
    capital.front() = 'L';
    out.push_back(fmt::format("{} {} on this text: without {} the loss falls.", capital,
                              harmful.size() == 1 ? "hurts" : "each hurt",
                              harmful.size() == 1 ? "it" : "one of them"));
  }
  const bool known = least.cls != LayerClass::undecided;
  if (idle.empty() && harmful.empty() && least.removal.low > 0.01) {
    out.push_back(fmt::format(
        "Every layer earns its place on this text: the cheapest, layer {}, costs {}, {}.",
        least.layer, cost_text(least.removal), perplexity(least.removal.mean)));
  } else if (idle.empty() && harmful.empty() && known) {
    out.push_back(fmt::format("The cheapest layer on this text, layer {}, costs {}, {}.",
                              least.layer, cost_text(least.removal),
                              perplexity(least.removal.mean)));
  }
  if (!unknown.empty()) {
    out.push_back(
        fmt::format("Not enough text to tell for {}: the interval reaches from below 0 "
                    "to above {}, or there is none.",
                    layers_text(unknown), kCheapCost));
  }
}

/// Second: what would cutting a quarter of the layers cost now, and if trained that way?
void say_cut(const ProbeResult& r, std::vector<std::string>& out) {
  const auto& greedy = r.curves.greedy;
  if (std::ssize(greedy) <= r.shape.cut || r.shape.cut == 0) return;
  const CurvePoint& point = greedy[as_size(r.shape.cut)];
  Layers removed = point.removed;
  std::sort(removed.begin(), removed.end());
  // One layer's cost was measured on all tokens, the curve on fewer.
  const bool one = removed.size() == 1;
  const Cost& alone = r.layers[as_size(removed.front())].removal;
  const double now = one ? alone.mean : point.loss - greedy.front().loss;
  const std::string cost =
      one ? cost_text(alone)
      : r.curves.tokens == r.tokens
          ? fmt::format("{:.3f} nats", now)
          : fmt::format("{:.3f} nats (on {} tokens)", now, format_whole(r.curves.tokens));
  std::string text = fmt::format("Cutting {} ({} of {}) costs {} on this text without retraining",
                                 layers_text(removed), removed.size(), r.model.layers, cost);
  if (r.model.causal) {
    text += fmt::format(", and decoding gets {:.0f} % faster (modelled, {})",
                        100 * r.shape.decode_saving, r.shape.hardware);
  }
  if (r.shape.trained_price && r.model.causal) {
    text += fmt::format(
        "; a model trained with {} fewer would lose about {:.3f} by the "
        "Gemstones law at 20 tokens a parameter ({})",
        one ? "one layer" : fmt::format("{} layers", removed.size()), r.shape.trained_price->nats,
        r.shape.trained_price->evidence);
    if (now > 10 * r.shape.trained_price->nats) text += ": retrain rather than cut";
  }
  out.push_back(text + ".");
}

/// Third: depth against width.
void say_shape(const ProbeResult& r, std::vector<std::string>& out) {
  if (!r.shape.band || !r.shape.law_layers) return;
  const double L = as_double(r.model.layers);
  const char* word = L > r.shape.band->high  ? "deeper than the laws ask"
                     : L < r.shape.band->low ? "shallower than the laws ask"
                                             : "inside the band";
  out.push_back(
      fmt::format("Depth against width: {} layers at width {}. At this size the laws "
                  "together ask for {:.0f}, and {:.0f} to {:.0f} are within 0.5 % of the "
                  "best loss ({}): {}.",
                  r.model.layers, r.model.width, *r.shape.law_layers, std::ceil(r.shape.band->low),
                  std::floor(r.shape.band->high), r.shape.evidence, word));
}

void say_attention(const ProbeResult& r, std::vector<std::string>& out) {
  constexpr double kQuietAttention = 0.005;
  Layers quiet;
  double sum = 0;
  for (const LayerResult& layer : r.layers) {
    if (layer.attention.high < kQuietAttention && layer.cls != LayerClass::idle) {
      quiet.push_back(layer.layer);
      sum += layer.attention.mean;
    }
  }
  if (quiet.empty()) return;
  std::string text =
      fmt::format("Attention in {} is nearly idle on this text (sum of costs {:.3f} nats)",
                  layers_text(quiet), sum);
  if (r.model.causal) {
    text += fmt::format(" and holds {:.0f} % of the key-value cache",
                        100 * as_double(quiet.size()) / as_double(r.model.layers));
  }
  out.push_back(text + ".");
}

void say_equal(const ProbeResult& r, std::vector<std::string>& out) {
  for (const LayerResult& layer : r.layers) {
    if (layer.same_as >= 0) {
      out.push_back(
          fmt::format("Layers {} and {} have identical weights.", layer.same_as, layer.layer));
    }
  }
}

}  // namespace

std::string layers_text(const Layers& layers) {
  if (layers.size() == 1) return fmt::format("layer {}", layers.front());
  std::string text = "layers ";
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) text += i + 1 == layers.size() ? " and " : ", ";
    text += fmt::format("{}", layers[i]);
  }
  return text;
}

std::vector<std::string> make_verdict(const ProbeResult& r) {
  std::vector<std::string> out;
  if (r.has_loss) {
    say_layers(r, out);
    say_cut(r, out);
  }
  if (r.model.causal) say_shape(r, out);  // the laws are of models that predict the next token
  if (r.has_loss) say_attention(r, out);
  say_equal(r, out);
  return out;
}

}  // namespace fathom::probe
