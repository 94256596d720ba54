#include "probe/head_importance.h"

#include <cmath>

#include "core/counts.h"
#include "pretrained/backward.h"

namespace fathom::probe {
namespace {

using LayerList = std::vector<std::shared_ptr<const pretrained::LayerWeights>>;

/// dL/dxi of every head, layer by layer, for one window.
std::vector<double> gate_gradients(const pretrained::Forward& forward,
                                   const pretrained::Layout& layout, const LayerList& layers,
                                   const Window& window) {
  const std::size_t size = window.inputs.size() * as_size(layout.width);
  std::vector<std::vector<float>> states(layers.size() + 1, std::vector<float>(size));
  pretrained::Scratch scratch;
  forward.embed(window.inputs, states[0].data());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    states[l + 1] = states[l];
    forward.run_layer(*layers[l], static_cast<std::int64_t>(l), states[l + 1].data(), scratch);
  }
  const pretrained::Backward backward(forward);
  std::vector<float> gradient(size);
  std::vector<double> gates(layers.size() * as_size(layout.heads));
  backward.ends(states.back().data(), window.targets, gradient.data());
  for (std::size_t l = layers.size(); l-- > 0;) {
    backward.layer(*layers[l], static_cast<std::int64_t>(l), states[l].data(), gradient.data(),
                   gates.data() + l * as_size(layout.heads));
  }
  return gates;
}

}  // namespace

std::optional<double> importance_agreement(const std::vector<HeadResult>& heads) {
  std::vector<double> importance, cost;
  for (const HeadResult& head : heads) {
    if (!head.importance || !head.removal) continue;
    importance.push_back(*head.importance);
    cost.push_back(std::abs(head.removal->mean));
  }
  if (cost.size() < 3) return std::nullopt;
  return rank_correlation(importance, cost);
}

void measure_head_importance(Sweep& sweep, std::span<const Window> windows,
                             std::vector<HeadResult>& heads) {
  const pretrained::Layout& layout = sweep.weights().layout();
  LayerList layers;
  for (std::int64_t l = 0; l < layout.depth(); ++l) layers.push_back(sweep.weights().layer(l));
  std::vector<const pretrained::Forward*> forwards;
  for (const Window& window : windows) {
    forwards.push_back(&sweep.forward(std::ssize(window.inputs)));
  }
  std::vector<std::vector<double>> gates(windows.size());
  run_tasks(sweep.control().threads, windows.size(), [&](std::size_t w, std::size_t) {
    gates[w] = gate_gradients(*forwards[w], layout, layers, windows[w]);
  });
  double counted = 0;
  for (const Window& window : windows) counted += window.target_count() > 0 ? 1 : 0;
  for (HeadResult& head : heads) {
    double sum = 0;
    for (std::size_t w = 0; w < windows.size(); ++w) {
      const double tokens = as_double(windows[w].target_count());
      if (tokens == 0) continue;
      sum += std::abs(gates[w][as_size(head.layer * layout.heads + head.head)]) / tokens;
    }
    head.importance = counted > 0 ? sum / counted : 0;
  }
}

}  // namespace fathom::probe
