#include "probe/heads.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/counts.h"
#include "core/random.h"
#include "pretrained/kernels.h"

namespace fathom::probe {
namespace {

constexpr std::int64_t kNear = 8, kSettled = 16;
constexpr double kClear = 0.4, kLocal = 0.6, kBroad = 0.9;

/// Rows from kSettled on, or the later half of a short window.
std::int64_t first_settled(std::int64_t tokens) {
  return std::min(kSettled, tokens / 2);
}

double row_entropy(const float* row, std::int64_t tokens) {
  double entropy = 0, keys = 0;
  for (std::int64_t j = 0; j < tokens; ++j) {
    if (row[j] > 0) {
      entropy -= row[j] * std::log(static_cast<double>(row[j]));
      ++keys;
    }
  }
  return keys > 1 ? entropy / std::log(keys) : 1;
}

struct LayerHeads {
  std::vector<HeadScores> scores;
  std::vector<double> contribution;
};

void add(HeadScores& to, const HeadScores& from) {
  to.previous += from.previous;
  to.induction += from.induction;
  to.duplicate += from.duplicate;
  to.sink += from.sink;
  to.local += from.local;
  to.broad += from.broad;
}

/// Means over places of |W_O^h z^h| / |h| for every head of one layer.
std::vector<double> contributions(const pretrained::LayerWeights& layer,
                                  const pretrained::Layout& layout, const std::vector<float>& h,
                                  const std::vector<float>& outputs) {
  const std::int64_t D = layout.width, K = layout.head_size, H = layout.heads;
  const std::int64_t T = std::ssize(h) / D;
  std::vector<double> result(as_size(H), 0.0);
  std::vector<float> written(as_size(T * D));
  for (std::int64_t head = 0; head < H; ++head) {
    pretrained::multiply_strided(T, D, K, 1, outputs.data() + head * K, H * K,
                                 layer.out.values.data() + head * K, H * K, true, written.data(),
                                 D);
    for (std::int64_t t = 1; t < T; ++t) {
      double up = 0, down = 0;
      for (std::int64_t i = 0; i < D; ++i) {
        up += static_cast<double>(written[as_size(t * D + i)]) * written[as_size(t * D + i)];
        down += static_cast<double>(h[as_size(t * D + i)]) * h[as_size(t * D + i)];
      }
      if (down > 0) result[as_size(head)] += std::sqrt(up / down) / as_double(T - 1);
    }
  }
  return result;
}

/// One window through all layers, every head watched.
std::vector<LayerHeads> watch_window(
    Sweep& sweep, const pretrained::Forward& forward,
    const std::vector<std::shared_ptr<const pretrained::LayerWeights>>& layers,
    const Window& window, std::int64_t front, std::int64_t repeat) {
  const pretrained::Layout& layout = sweep.weights().layout();
  const std::int64_t T = std::ssize(window.inputs);
  pretrained::Scratch scratch;
  std::vector<float> h(as_size(T * layout.width));
  forward.embed(window.inputs, h.data());
  std::vector<LayerHeads> result;
  for (std::int64_t l = 0; l < layout.depth(); ++l) {
    LayerHeads own;
    std::vector<float> outputs(as_size(T * layout.heads * layout.head_size)), before = h;
    pretrained::LayerWatch watch;
    watch.head_outputs = outputs.data();
    watch.heads = [&](std::int64_t, const float* weights) {
      own.scores.push_back(score_head(weights, T, front, repeat));
    };
    forward.run_layer(*layers[as_size(l)], l, h.data(), scratch, {}, watch);
    if (repeat == 0) own.contribution = contributions(*layers[as_size(l)], layout, before, outputs);
    result.push_back(std::move(own));
  }
  return result;
}

}  // namespace

HeadScores score_head(const float* weights, std::int64_t tokens, std::int64_t front,
                      std::int64_t repeat) {
  const auto at = [&](std::int64_t i, std::int64_t j) {
    return static_cast<double>(weights[i * tokens + j]);
  };
  HeadScores s;
  if (repeat > 0) {
    for (std::int64_t i = front + repeat; i < front + 2 * repeat; ++i) {
      s.induction += at(i, i - repeat + 1) / as_double(repeat);
      s.duplicate += at(i, i - repeat) / as_double(repeat);
    }
    return s;
  }
  for (std::int64_t i = 1; i < tokens; ++i) {
    s.previous += at(i, i - 1) / as_double(tokens - 1);
    s.sink += at(i, 0) / as_double(tokens - 1);
  }
  const std::int64_t begin = first_settled(tokens);
  for (std::int64_t i = begin; i < tokens; ++i) {
    const double share = 1 / as_double(tokens - begin);
    for (std::int64_t j = std::max<std::int64_t>(0, i - kNear + 1); j <= i; ++j) {
      s.local += at(i, j) * share;
    }
    s.broad += row_entropy(weights + i * tokens, tokens) * share;
  }
  return s;
}

HeadRole role_of(const HeadScores& s) {
  const std::array clear{
      std::pair{s.previous, HeadRole::previous}, std::pair{s.induction, HeadRole::induction},
      std::pair{s.duplicate, HeadRole::duplicate}, std::pair{s.sink, HeadRole::sink}};
  const auto best = std::max_element(
      clear.begin(), clear.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (best->first > kClear) return best->second;
  if (s.local > kLocal) return HeadRole::local;
  return s.broad > kBroad ? HeadRole::broad : HeadRole::mixed;
}

std::vector<Window> repeated_windows(std::span<const Window> text, std::int64_t front,
                                     std::int64_t context, std::size_t count,
                                     std::int64_t& repeat) {
  constexpr std::int64_t kLongest = 64, kShortest = 8;
  std::set<TokenId> seen;
  for (const Window& window : text) {
    seen.insert(window.inputs.begin() + std::min(front, std::ssize(window.inputs)),
                window.inputs.end());
  }
  std::vector<TokenId> ids(seen.begin(), seen.end());
  repeat = std::min({kLongest, std::ssize(ids), (context - front) / 2});
  std::vector<Window> windows;
  if (repeat < kShortest) {
    repeat = 0;
    return windows;
  }
  for (std::size_t n = 0; n < count; ++n) {
    const RandomStream stream(2, n);
    std::vector<TokenId> block = ids;
    for (std::size_t i = 0; i < as_size(repeat); ++i) {
      std::swap(block[i], block[i + stream.below(i, block.size() - i)]);
    }
    block.resize(as_size(repeat));
    Window window;
    const auto begin = text.front().inputs.begin();
    window.inputs.assign(begin, begin + front);
    for (int copy = 0; copy < 2; ++copy) {
      window.inputs.insert(window.inputs.end(), block.begin(), block.end());
    }
    window.targets.assign(window.inputs.size(), -1);
    windows.push_back(std::move(window));
  }
  return windows;
}

std::vector<HeadResult> measure_heads(Sweep& sweep, std::span<const Window> windows,
                                      std::span<const Window> repeated, std::int64_t front,
                                      std::int64_t repeat) {
  const pretrained::Layout& layout = sweep.weights().layout();
  std::vector<std::shared_ptr<const pretrained::LayerWeights>> layers;
  for (std::int64_t l = 0; l < layout.depth(); ++l) layers.push_back(sweep.weights().layer(l));
  std::vector<HeadResult> heads;
  for (std::int64_t l = 0; l < layout.depth(); ++l) {
    for (std::int64_t h = 0; h < layout.heads; ++h) heads.push_back({l, h, {}, {}, 0, {}, {}});
  }
  const std::size_t total = windows.size() + repeated.size();
  std::vector<std::vector<LayerHeads>> watched(total);
  std::vector<const pretrained::Forward*> forwards;
  const auto window_at = [&](std::size_t n) -> const Window& {
    return n < windows.size() ? windows[n] : repeated[n - windows.size()];
  };
  for (std::size_t n = 0; n < total; ++n) {
    forwards.push_back(&sweep.forward(std::ssize(window_at(n).inputs)));
  }
  run_tasks(sweep.control().threads, total, [&](std::size_t n, std::size_t) {
    watched[n] = watch_window(sweep, *forwards[n], layers, window_at(n), front,
                              n < windows.size() ? 0 : repeat);
  });
  for (std::size_t n = 0; n < total; ++n) {
    const double share = 1 / as_double(n < windows.size() ? windows.size() : repeated.size());
    for (HeadResult& head : heads) {
      const LayerHeads& layer = watched[n][as_size(head.layer)];
      HeadScores scores = layer.scores[as_size(head.head)];
      for (double* value : {&scores.previous, &scores.induction, &scores.duplicate, &scores.sink,
                            &scores.local, &scores.broad}) {
        *value *= share;
      }
      add(head.scores, scores);
      if (!layer.contribution.empty()) {
        head.contribution += layer.contribution[as_size(head.head)] * share;
      }
    }
  }
  for (HeadResult& head : heads) {
    if (repeated.empty()) head.scores.induction = head.scores.duplicate = NAN;
    head.role = role_of(head.scores);
  }
  return heads;
}

void measure_head_removals(Sweep& sweep, std::span<const Window> windows, std::size_t most,
                           std::vector<HeadResult>& heads) {
  std::vector<std::size_t> order(heads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return heads[a].importance > heads[b].importance;
  });
  if (order.size() > most) {
    const auto half = static_cast<std::ptrdiff_t>(most / 2);
    order.erase(order.begin() + half, order.end() - half);
  }
  const std::int64_t depth = sweep.weights().layout().depth();
  const Path base = whole_path(depth);
  std::vector<Variant> variants;
  for (const std::size_t index : order) {
    Variant variant{as_size(heads[index].layer), {}};
    for (std::int64_t l = heads[index].layer; l < depth; ++l) variant.steps.push_back({l, {}, {}});
    variant.steps.front().edit.silent_head = heads[index].head;
    variants.push_back(std::move(variant));
  }
  std::vector<WindowSums> sums(order.size());
  sweep.run(windows, base, variants,
            [&](std::size_t w, const WindowStreams&, const WindowLosses& losses) {
              for (std::size_t v = 0; v < order.size(); ++v) {
                double difference = 0;
                for (std::size_t i = 0; i < losses.base.size(); ++i) {
                  difference += static_cast<double>(losses.variants[v][i]) - losses.base[i];
                }
                sums[v].add(difference, as_double(windows[w].target_count()));
              }
            });
  for (std::size_t v = 0; v < order.size(); ++v) heads[order[v]].removal = estimate(sums[v]);
}

}  // namespace fathom::probe
