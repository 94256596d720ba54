#include "shape/rounding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/counts.h"

namespace fathom {
namespace {

constexpr double kOddHeadsCost = 0.1;
constexpr double kAwkwardHeadsCost = 0.01;  // an odd factor above 9: 22, 26, 30 heads
constexpr double kUnusualHeadCost = 0.01;
constexpr double kSmallHeadCost = 0.03;
constexpr double kTrimCost = 0.1;
constexpr double kMostTrim = 0.2;
constexpr double kMostTrimNarrow = 0.3;  // below width 512, where the lattice is coarse
/// A feed-forward of the usual ratio stays when it leaves the budget by no more than this.
constexpr double kUntrimmed = 0.015;
constexpr std::int64_t kNarrowest = 32;
constexpr double kFarthestWidth = 1.6;  // of the width that spends the budget

bool is_friendly_depth(std::int64_t layers) {
  if (layers <= 8) return true;
  // m 2^k: the four leading bits are m, the rest zero.
  const int shift = std::max(0, static_cast<int>(std::bit_width(as_size(layers))) - 4);
  const std::int64_t m = layers >> shift;
  return (m << shift) == layers && (m == 8 || m == 9 || m == 10 || m == 12 || m == 14) &&
         layers != 9;
}

bool is_fine_depth(std::int64_t layers) {
  return layers % (layers <= 64 ? 2 : layers <= 128 ? 4 : 8) == 0;
}

struct HeadChoice {
  std::int64_t size;
  double cost;
};

std::vector<HeadChoice> head_choices(double width, const RoundingRules& rules) {
  if (rules.head_size > 0) return {{rules.head_size, 0}};
  const std::int64_t usual = full_head_size(width);
  std::vector<HeadChoice> choices{{usual, 0}, {usual == 128 ? 64 : 128, kUnusualHeadCost}};
  for (const std::int64_t size : {96, 80, 112}) choices.push_back({size, 2 * kUnusualHeadCost});
  if (width < 1024) choices.push_back({32, width < 512 ? kUnusualHeadCost : kSmallHeadCost});
  if (width < 512) choices.push_back({48, kUnusualHeadCost});
  if (width < 256) choices.push_back({16, kSmallHeadCost});
  if (width < 128) choices.push_back({24, kSmallHeadCost});
  if (width < 64) choices.push_back({8, 2 * kSmallHeadCost});
  return choices;
}

double head_count_cost(std::int64_t heads) {
  if (heads > 1 && heads % 2 == 1) return kOddHeadsCost;
  std::int64_t odd = heads;
  while (odd % 2 == 0) odd /= 2;
  return odd > 9 ? kAwkwardHeadsCost : 0;
}

/// Heads must be a multiple of this: they split over the tensor-parallel devices together with
/// their groups.
std::int64_t head_unit(const ShapeRequest& base, const RoundingRules& rules) {
  if (base.kv_heads > 0) return std::lcm(base.kv_heads, rules.tensor_parallel);
  return rules.tensor_parallel * base.kv_group;
}

struct Sized {
  Shape shape;
  double cost = 0;
};

/// Gives the feed-forward what is left of the budget, within its limits.
Sized size_feed_forward(ShapeRequest request, const RoundingTarget& target,
                        const RoundingRules& rules) {
  const auto off = [&](const Shape& shape) {
    return std::fabs(std::log(target.count(shape) / target.budget));
  };
  const bool free = feed_forward_is_free(request);
  request.ffn = feed_forward_width(request, rules.tensor_parallel);
  const Shape usual = complete(request);
  if (!free || off(usual) <= kUntrimmed) return {usual, off(usual)};

  const std::int64_t unit = std::lcm(feed_forward_multiple(request.width), rules.tensor_parallel);
  const double per_unit = as_double(usual.layers * usual.ffn_matrices * usual.width * unit);
  const double wanted = (target.budget - target.count(usual)) / per_unit;
  const double share = request.width < 512 ? kMostTrimNarrow : kMostTrim;
  const double most = share * as_double(usual.ffn) / as_double(unit);
  request.ffn = usual.ffn + unit * std::llround(std::clamp(wanted, -most, most));
  if (request.ffn < unit) return {usual, off(usual)};
  const Shape trimmed = complete(request);
  const double trim = std::fabs(std::log(as_double(trimmed.ffn) / as_double(usual.ffn)));
  return {trimmed, off(trimmed) + kTrimCost * trim};
}

}  // namespace

std::vector<std::int64_t> friendly_depths(double low, double high, const RoundingRules& rules,
                                          bool fine) {
  const std::int64_t stages = rules.pipeline_parallel;
  if (rules.max_layers > 0) high = std::min(high, as_double(rules.max_layers));
  std::vector<std::int64_t> depths;
  for (std::int64_t layers = stages; as_double(layers) <= high; layers += stages) {
    const bool friendly = is_friendly_depth(layers) || is_friendly_depth(layers / stages);
    if (as_double(layers) >= low && (friendly || (fine && is_fine_depth(layers)))) {
      depths.push_back(layers);
    }
  }
  return depths;
}

std::int64_t width_step(double width) {
  if (width < 128) return 16;
  if (width < 512) return 32;
  if (width < 1024) return 64;
  return std::int64_t{1} << (static_cast<int>(std::log2(width)) - 3);
}

std::int64_t round_vocab(std::int64_t vocab, std::int64_t tensor_parallel) {
  const std::int64_t unit = 64 * tensor_parallel;
  return (vocab + unit - 1) / unit * unit;
}

bool feed_forward_is_free(const ShapeRequest& base) {
  return base.ffn == 0 && base.ffn_ratio == 0;
}

std::optional<Shape> shape_at_depth(const RoundingTarget& target, const ShapeRequest& base,
                                    const RoundingRules& rules) {
  std::optional<Sized> best;
  for (const HeadChoice& head : head_choices(target.width, rules)) {
    const std::int64_t multiple = rules.width_multiple > 0 ? rules.width_multiple : 16;
    const std::int64_t unit = std::lcm(multiple, head.size * head_unit(base, rules));
    const auto units = static_cast<std::int64_t>(target.width / as_double(unit) / kFarthestWidth);
    for (std::int64_t width = std::max<std::int64_t>(1, units) * unit;
         as_double(width) <= std::max(as_double(unit), kFarthestWidth * target.width);
         width += unit) {
      if (width < kNarrowest) continue;
      if (rules.width_multiple == 0 && width % width_step(as_double(width)) != 0) continue;
      ShapeRequest request = base;
      request.layers = target.layers;
      request.width = width;
      request.head_size = head.size;
      request.heads = width / head.size;
      Sized sized = size_feed_forward(request, target, rules);
      sized.cost += head.cost + head_count_cost(request.heads);
      if (!best || sized.cost < best->cost) best = sized;
    }
  }
  if (!best) return std::nullopt;
  return best->shape;
}

}  // namespace fathom
