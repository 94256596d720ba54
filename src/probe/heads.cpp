#include "probe/heads.h"

#include <algorithm>
#include <cmath>
#include <map>
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

void add(HeadScores& to, const HeadScores& from, double share) {
  std::vector<double> values;
  HeadScores::visit(from, [&](const char*, double value) { values.push_back(value * share); });
  auto next = values.begin();
  HeadScores::visit(to, [&](const char*, double& sum) { sum += *next++; });
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
    const Window& window, std::int64_t front, std::int64_t repeat,
    const std::vector<char>& delimiters) {
  const pretrained::Layout& layout = sweep.weights().layout();
  const std::int64_t T = std::ssize(window.inputs);
  std::vector<char> marks;
  for (const TokenId id : window.inputs) {
    if (!delimiters.empty()) marks.push_back(delimiters.at(as_size(id)));
  }
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
      own.scores.push_back(score_head(weights, T, front, repeat, marks));
    };
    forward.run_layer(*layers[as_size(l)], l, h.data(), scratch, {}, watch);
    if (repeat == 0) own.contribution = contributions(*layers[as_size(l)], layout, before, outputs);
    result.push_back(std::move(own));
  }
  return result;
}

/// The paired cost of removing each group of heads.
std::vector<Cost> removal_costs(Sweep& sweep, std::span<const Window> windows,
                                const std::vector<std::vector<const HeadResult*>>& groups) {
  const std::int64_t depth = sweep.weights().layout().depth();
  std::vector<Variant> variants;
  for (const auto& group : groups) {
    std::int64_t first = depth;
    for (const HeadResult* head : group) first = std::min(first, head->layer);
    Variant variant{as_size(first), {}};
    for (std::int64_t l = first; l < depth; ++l) variant.steps.push_back({l, {}, {}});
    for (const HeadResult* head : group) {
      variant.steps[as_size(head->layer - first)].edit.silent.push_back({head->head});
    }
    variants.push_back(std::move(variant));
  }
  std::vector<WindowSums> sums(groups.size());
  sweep.run(windows, whole_path(depth), variants,
            [&](std::size_t w, const WindowStreams&, const WindowLosses& losses) {
              for (std::size_t v = 0; v < sums.size(); ++v) {
                double difference = 0;
                for (std::size_t i = 0; i < losses.base.size(); ++i) {
                  difference += static_cast<double>(losses.variants[v][i]) - losses.base[i];
                }
                sums[v].add(difference, as_double(windows[w].target_count()));
              }
            });
  std::vector<Cost> costs;
  costs.reserve(sums.size());
  for (const WindowSums& each : sums) costs.push_back(estimate(each));
  return costs;
}

}  // namespace

std::vector<char> delimiter_ids(const data::Tokenizer& tokenizer) {
  std::vector<char> ids(tokenizer.vocabulary());
  for (std::size_t id = 0; id < ids.size(); ++id) {
    std::string text(tokenizer.bytes_of(static_cast<TokenId>(id)));
    std::erase(text, ' ');
    ids[id] = !text.empty() && text.find_first_not_of(".,;:!?()\"'\n\r") == std::string::npos;
  }
  return ids;
}

HeadScores score_head(const float* weights, std::int64_t tokens, std::int64_t front,
                      std::int64_t repeat, std::span<const char> delimiters) {
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
  s.self = at(0, 0) / as_double(tokens);
  for (std::int64_t i = 1; i < tokens; ++i) {
    s.self += at(i, i) / as_double(tokens);
    s.previous += at(i, i - 1) / as_double(tokens - 1);
    s.sink += at(i, 0) / as_double(tokens - 1);
    if (i > 1) s.second += at(i, i - 2) / as_double(tokens - 2);
    for (std::size_t j = 0; j < delimiters.size(); ++j) {
      if (delimiters[j] != 0) s.delimiter += at(i, as_signed(j)) / as_double(tokens - 1);
    }
  }
  if (delimiters.empty()) s.delimiter = NAN;
  const std::int64_t begin = first_settled(tokens);
  for (std::int64_t i = begin; i < tokens; ++i) {
    const double share = 1 / as_double(tokens - begin);
    for (std::int64_t j = std::max<std::int64_t>(0, i - kNear + 1); j <= i; ++j) {
      s.local += at(i, j) * share;
    }
    s.broad += row_entropy(weights + i * tokens, tokens) * share;
    for (std::int64_t j = 0; j < tokens; ++j) {
      s.span += at(i, j) * std::abs(as_double(i - j)) * share;
    }
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
                                      std::int64_t repeat, const std::vector<char>& delimiters) {
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
                              n < windows.size() ? 0 : repeat,
                              n < windows.size() ? delimiters : std::vector<char>{});
  });
  for (std::size_t n = 0; n < total; ++n) {
    const double share = 1 / as_double(n < windows.size() ? windows.size() : repeated.size());
    for (HeadResult& head : heads) {
      const LayerHeads& layer = watched[n][as_size(head.layer)];
      add(head.scores, layer.scores[as_size(head.head)], share);
      if (!layer.contribution.empty()) {
        head.contribution += layer.contribution[as_size(head.head)] * share;
      }
    }
  }
  for (HeadResult& head : heads) {
    if (repeated.empty()) head.scores.induction = head.scores.duplicate = NAN;
    if (delimiters.empty()) head.scores.delimiter = NAN;
    head.scores.copying = head.scores.copying_positive = NAN;  // measure_head_copying
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
  std::vector<std::vector<const HeadResult*>> groups;
  for (const std::size_t index : order) groups.push_back({&heads[index]});
  const std::vector<Cost> costs = removal_costs(sweep, windows, groups);
  for (std::size_t v = 0; v < order.size(); ++v) heads[order[v]].removal = costs[v];
}

std::vector<RoleRemoval> measure_role_removals(Sweep& sweep, std::span<const Window> windows,
                                               const std::vector<HeadResult>& heads) {
  std::map<HeadRole, std::vector<const HeadResult*>> by_role;
  for (const HeadResult& head : heads) by_role[head.role].push_back(&head);
  std::vector<RoleRemoval> removals;
  std::vector<std::vector<const HeadResult*>> groups;
  for (const auto& [role, members] : by_role) {
    if (members.size() < 2) continue;
    removals.push_back({role, std::ssize(members), {}});
    groups.push_back(members);
  }
  const std::vector<Cost> costs = removal_costs(sweep, windows, groups);
  for (std::size_t i = 0; i < removals.size(); ++i) removals[i].removal = costs[i];
  return removals;
}

}  // namespace fathom::probe
