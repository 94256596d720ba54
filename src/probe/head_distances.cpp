#include "probe/head_distances.h"

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "probe/sweep.h"

namespace fathom::probe {
namespace {

constexpr std::int64_t kFirstQuery = 16;

/// The weights of every head of the model over one window, [T, T] each, layer by layer.
std::vector<std::vector<float>> attention_maps(Sweep& sweep, const Window& window) {
  const pretrained::Layout& layout = sweep.weights().layout();
  const std::int64_t T = std::ssize(window.inputs);
  const pretrained::Forward& forward = sweep.forward(T);
  pretrained::Scratch scratch;
  std::vector<float> h(as_size(T * layout.width));
  forward.embed(window.inputs, h.data());
  std::vector<std::vector<float>> maps;
  for (std::int64_t l = 0; l < layout.depth(); ++l) {
    pretrained::LayerWatch watch;
    watch.heads = [&](std::int64_t, const float* weights) {
      maps.emplace_back(weights, weights + T * T);
    };
    forward.run_layer(*sweep.weights().layer(l), l, h.data(), scratch, {}, watch);
  }
  return maps;
}

double map_distance(const std::vector<float>& a, const std::vector<float>& b, std::int64_t T) {
  const std::int64_t first = std::min(kFirstQuery, T / 2);
  double sum = 0;
  for (std::int64_t i = first; i < T; ++i) {
    const auto row = [&](const std::vector<float>& map) {
      return std::span(map).subspan(as_size(i * T), as_size(i + 1));
    };
    sum += jensen_shannon(row(a), row(b));
  }
  return sum / as_double(T - first);
}

}  // namespace

double jensen_shannon(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) {
    const double p = a[j];
    const double q = b[j];
    const double mean = (p + q) / 2;
    if (p > 0) sum += p * std::log(p / mean) / 2;
    if (q > 0) sum += q * std::log(q / mean) / 2;
  }
  return sum;
}

HeadDistances measure_head_distances(pretrained::Weights& weights,
                                     std::span<const Window> windows) {
  Sweep sweep(weights, {});
  const auto heads = as_size(weights.layout().heads);
  double within = 0;
  double between = 0;
  double within_pairs = 0;
  double between_pairs = 0;
  for (const Window& window : windows) {
    const auto maps = attention_maps(sweep, window);
    for (std::size_t a = 0; a < maps.size(); ++a) {
      for (std::size_t b = a + 1; b < maps.size(); ++b) {
        const bool same_layer = a / heads == b / heads;
        (same_layer ? within : between) +=
            map_distance(maps[a], maps[b], std::ssize(window.inputs));
        ++(same_layer ? within_pairs : between_pairs);
      }
    }
  }
  return {within / within_pairs, between / between_pairs};
}

}  // namespace fathom::probe
