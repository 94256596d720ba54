#include "probe/removals.h"

#include <algorithm>
#include <numeric>

#include "core/counts.h"
#include "fits/statistics.h"
#include "probe/layer_class.h"

namespace fathom::probe {
namespace {

Variant with_edit(std::int64_t layer, std::int64_t depth, bool attention, bool ffn) {
  Variant variant{as_size(layer), {}};
  for (std::int64_t l = layer; l < depth; ++l) variant.steps.push_back({l, {}, nullptr});
  variant.steps.front().edit.attention = attention;
  variant.steps.front().edit.ffn = ffn;
  return variant;
}

Variant swapped(std::int64_t layer, std::int64_t depth) {
  Variant variant = with_edit(layer, depth, true, true);
  std::swap(variant.steps[0].layer, variant.steps[1].layer);
  return variant;
}

}  // namespace

double difference(const std::vector<float>& variant, const std::vector<float>& base) {
  double sum = 0;
  for (std::size_t i = 0; i < base.size(); ++i) {
    sum += static_cast<double>(variant[i]) - static_cast<double>(base[i]);
  }
  return sum;
}

Removals::Removals(std::int64_t depth)
    : depth_(depth),
      influence_(as_size(depth)),
      geometry_(as_size(depth)),
      largest_(as_size(depth) + 1, 0.0),
      median_(as_size(depth) + 1, 0.0) {
  const Path whole = whole_path(depth);
  for (std::int64_t l = 0; l < depth; ++l) {
    variants_.push_back(along(whole, path_without(whole, {l})));
    variants_.push_back(with_edit(l, depth, false, true));
    variants_.push_back(with_edit(l, depth, true, false));
    distance_.emplace_back(as_size(depth - l), 0.0);
  }
  for (std::int64_t l = 0; l + 1 < depth; ++l) variants_.push_back(swapped(l, depth));
  sums_.resize(variants_.size());
}

void Removals::add(const Window& window, const WindowStreams& streams, const WindowLosses& losses,
                   std::int64_t width, unsigned threads) {
  const double tokens = as_double(window.target_count());
  tokens_ += window.target_count();
  loss_.add(std::accumulate(losses.base.begin(), losses.base.end(), 0.0), tokens);
  for (std::size_t v = 0; v < variants_.size(); ++v) {
    sums_[v].add(difference(losses.variants[v], losses.base), tokens);
  }
  const WindowGeometry g = measure_geometry(streams, width, threads);
  geometry_tokens_ += g.tokens;
  first_tokens_ += 1;
  for (std::size_t l = 0; l < geometry_.size(); ++l) {
    for (const auto field : kTokenSums) geometry_[l].*field += g.layers[l].*field;
    geometry_[l].first_influence += g.layers[l].first_influence;
    influence_[l].add(g.layers[l].influence, g.tokens);
    for (std::size_t n = 0; n < distance_[l].size(); ++n) distance_[l][n] += g.distance[l][n];
  }
  for (std::size_t l = 0; l < largest_.size(); ++l) {
    largest_[l] = std::max(largest_[l], g.largest[l]);
    median_[l] += g.median[l];
  }
}

bool Removals::settled() const {
  for (std::int64_t l = 0; l < depth_; ++l) {
    if (!is_settled(estimate(sums_[3 * as_size(l)]))) return false;
  }
  return true;
}

void Removals::fill_layer(std::int64_t layer, double tokens, LayerResult& out) const {
  const std::size_t l = as_size(layer);
  out.layer = layer;
  for (const auto field : kTokenSums) out.geometry.*field = geometry_[l].*field / tokens;
  out.geometry.first_influence = geometry_[l].first_influence / first_tokens_;
  out.removal = estimate(sums_[3 * l]);
  out.attention = estimate(sums_[3 * l + 1]);
  out.ffn = estimate(sums_[3 * l + 2]);
  if (layer + 1 < depth_) out.swap = estimate(sums_[3 * as_size(depth_) + l]);
}

void Removals::fill_agreement(ProbeResult& result) const {
  std::vector<double> influence, cost, first, second, first_influence, second_influence;
  for (std::size_t l = 0; l < as_size(depth_); ++l) {
    influence.push_back(result.layers[l].geometry.influence);
    cost.push_back(result.layers[l].removal.mean);
    first.push_back(half_mean(sums_[3 * l], 0));
    second.push_back(half_mean(sums_[3 * l], 1));
    first_influence.push_back(half_mean(influence_[l], 0));
    second_influence.push_back(half_mean(influence_[l], 1));
  }
  const double median = fits::quantile(influence, 0.5);
  for (LayerResult& layer : result.layers) {
    layer.quiet = layer.geometry.influence < kQuietShare * median;
    layer.cls = result.has_loss ? classify(layer.removal, layer.geometry.influence)
                                : LayerClass::unmeasured;
  }
  result.influence_agreement = rank_correlation(influence, cost);
  result.half_agreement = rank_correlation(first, second);
  result.half_influence_agreement = rank_correlation(first_influence, second_influence);
}

void Removals::fill(ProbeResult& result) const {
  result.tokens = tokens_;
  result.windows = static_cast<std::int64_t>(windows());
  result.loss = estimate(loss_);
  result.layers.assign(as_size(depth_), {});
  for (std::int64_t l = 0; l < depth_; ++l) {
    fill_layer(l, geometry_tokens_, result.layers[as_size(l)]);
  }
  result.distance = distance_;
  for (std::vector<double>& row : result.distance) {
    for (double& sum : row) sum /= geometry_tokens_;
  }
  result.streams.assign(largest_.size(), {});
  for (std::size_t l = 0; l < largest_.size(); ++l) {
    result.streams[l].largest = largest_[l];
    result.streams[l].median = median_[l] / as_double(windows());
  }
  fill_agreement(result);
}

}  // namespace fathom::probe
