#include "probe/curves.h"

#include <algorithm>
#include <numeric>

#include "core/counts.h"
#include "core/random.h"

namespace fathom::probe {
namespace {

using Order = std::vector<std::int64_t>;

/// Mean loss of the base and of every variant over all windows.
std::vector<double> mean_losses(Sweep& sweep, std::span<const Window> windows, const Path& base,
                                const std::vector<Variant>& variants) {
  std::vector<double> sums(variants.size() + 1, 0.0);
  double tokens = 0;
  sweep.run(windows, base, variants,
            [&](std::size_t w, const WindowStreams&, const WindowLosses& losses) {
              tokens += as_double(windows[w].target_count());
              const auto total = [](const std::vector<float>& list) {
                return std::accumulate(list.begin(), list.end(), 0.0);
              };
              sums[0] += total(losses.base);
              for (std::size_t v = 0; v < variants.size(); ++v) {
                sums[v + 1] += total(losses.variants[v]);
              }
            });
  for (double& sum : sums) sum /= tokens;
  return sums;
}

std::vector<CurvePoint> greedy(Sweep& sweep, std::span<const Window> windows, std::int64_t depth,
                               std::int64_t most) {
  std::vector<CurvePoint> curve;
  Path path = whole_path(depth);
  Order removed;
  for (std::int64_t n = 0; n < most; ++n) {
    std::vector<Variant> variants;
    for (const std::int64_t layer : path) {
      variants.push_back(along(path, path_without(path, {layer})));
    }
    const std::vector<double> losses = mean_losses(sweep, windows, path, variants);
    if (n == 0) curve.push_back({depth, losses.front(), {}});
    const auto best = std::min_element(losses.begin() + 1, losses.end());
    removed.push_back(path[as_size(best - losses.begin() - 1)]);
    path = path_without(path, {removed.back()});
    curve.push_back({depth - n - 1, *best, removed});
  }
  return curve;
}

std::vector<CurvePoint> along_order(Sweep& sweep, std::span<const Window> windows,
                                    std::int64_t depth, const Order& order, std::int64_t most) {
  const Path whole = whole_path(depth);
  std::vector<Variant> variants;
  for (std::int64_t n = 1; n <= most; ++n) {
    variants.push_back(along(whole, path_without(whole, Order(order.begin(), order.begin() + n))));
  }
  const std::vector<double> losses = mean_losses(sweep, windows, whole, variants);
  std::vector<CurvePoint> curve;
  for (std::int64_t n = 0; n <= most; ++n) {
    curve.push_back({depth - n, losses[as_size(n)], Order(order.begin(), order.begin() + n)});
  }
  return curve;
}

Order random_order(std::int64_t depth, int draw) {
  Order order = whole_path(depth);
  const RandomStream stream(1, static_cast<std::uint64_t>(draw));
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[stream.below(i, i)]);
  }
  return order;
}

}  // namespace

Order influence_order(const std::vector<double>& influence) {
  Order order = whole_path(std::ssize(influence));
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return influence[as_size(a)] < influence[as_size(b)];
  });
  return order;
}

Order last_order(std::int64_t depth) {
  Order order;
  for (std::int64_t l = depth - 2; l >= 0; --l) order.push_back(l);
  order.push_back(depth - 1);
  return order;
}

double curves_cost(std::int64_t depth, std::int64_t most) {
  const double L = as_double(depth), n = as_double(most);
  double runs = 0;
  for (std::int64_t k = 0; k < most; ++k) {
    const double left = as_double(depth - k);
    runs += left + left * (left - 1) / 2;
  }
  // Each order: the whole model and n cuts, which share little.
  return runs + (2 + kRandomOrders) * (L + n * (L - n / 2) * 0.8);
}

Curves measure_curves(Sweep& sweep, std::span<const Window> windows,
                      const std::vector<double>& influence, std::int64_t most) {
  const std::int64_t depth = std::ssize(influence);
  Curves curves;
  for (const Window& window : windows) curves.tokens += window.target_count();
  curves.greedy = greedy(sweep, windows, depth, most);
  curves.by_influence = along_order(sweep, windows, depth, influence_order(influence), most);
  curves.last = along_order(sweep, windows, depth, last_order(depth), most);
  for (int draw = 0; draw < kRandomOrders; ++draw) {
    curves.random.push_back(along_order(sweep, windows, depth, random_order(depth, draw), most));
  }
  return curves;
}

}  // namespace fathom::probe
