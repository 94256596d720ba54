#include "shape/rounding.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <optional>

#include "core/counts.h"
#include "core/error.h"

namespace fathom {
namespace {

constexpr double kOddHeadsCost = 0.03;
constexpr double kSmallHeadCost = 0.1;  // per halving below the usual head size

/// Head sizes to try: the requested one, or the usual one and its halves, each with the cost that a
/// smaller head than usual is given.
struct HeadChoice {
  std::int64_t size;
  double cost;
};

std::vector<HeadChoice> head_choices(double width, const ShapeRequest& base,
                                     const RoundingRules& rules) {
  if (rules.head_size > 0) return {{rules.head_size, 0}};
  const std::int64_t usual = full_head_size(width);
  // Smaller heads only buy finer widths where the usual ones would force large steps.
  const bool coarse = as_double(usual * rules.tensor_parallel * base.kv_group) > width / 4;
  if (!coarse) return {{usual, 0}};
  std::vector<HeadChoice> choices;
  double cost = 0;
  for (std::int64_t size = usual; size >= 16; size /= 2) {
    choices.push_back({size, cost});
    cost += kSmallHeadCost;
  }
  return choices;
}

/// Widths must be a multiple of this: the friendly multiple, whole heads, and heads that split over
/// the tensor-parallel devices together with their groups.
std::int64_t width_unit(double width, std::int64_t head_size, const ShapeRequest& base,
                        const RoundingRules& rules) {
  const std::int64_t friendly =
      rules.width_multiple > 0 ? rules.width_multiple : friendly_width_multiple(width);
  return std::lcm(friendly, head_size * rules.tensor_parallel * base.kv_group);
}

ShapeRequest candidate_request(const ShapeRequest& base, std::int64_t width, std::int64_t head_size,
                               const RoundingRules& rules) {
  ShapeRequest request = base;
  request.width = width;
  request.head_size = head_size;
  request.heads = width / head_size;
  request.ffn = feed_forward_width(request, rules.tensor_parallel);
  return request;
}

/// Whole depths near the real one that keep the pipeline rule and the limit.
std::vector<std::int64_t> depth_candidates(double layers, const RoundingRules& rules) {
  const std::int64_t unit = rules.pipeline_parallel;
  std::int64_t most = rules.max_layers > 0 ? rules.max_layers / unit * unit : 0;
  std::vector<std::int64_t> depths;
  const std::int64_t below = static_cast<std::int64_t>(layers / as_double(unit)) * unit;
  for (std::int64_t depth : {below, below + unit}) {
    if (most > 0) depth = std::min(depth, most);
    depth = std::max(depth, unit);
    if (depths.empty() || depths.back() != depth) depths.push_back(depth);
  }
  return depths;
}

}  // namespace

std::int64_t friendly_width_multiple(double width) {
  if (width >= 1024) return 128;
  return width >= 192 ? 64 : 32;
}

std::int64_t round_vocab(std::int64_t vocab, std::int64_t tensor_parallel) {
  const std::int64_t unit = 64 * tensor_parallel;
  return (vocab + unit - 1) / unit * unit;
}

Shape round_to_hardware(const RoundingTarget& target, const ShapeRequest& base,
                        const RoundingRules& rules) {
  std::optional<Shape> best;
  double best_cost = 0;
  const auto consider = [&](const Shape& shape, double head_cost) {
    const double layers = as_double(shape.layers);
    const double off_budget = std::fabs(std::log(target.count(shape) / target.budget));
    const double off_depth = std::fabs(std::log(layers / target.layers));
    // An odd number of heads can be split over no even number of devices.
    const double awkward = shape.heads > 1 && shape.heads % 2 == 1 ? kOddHeadsCost : 0;
    const double cost = off_budget + 0.5 * off_depth + awkward + head_cost;
    if (!best || cost < best_cost) {
      best = shape;
      best_cost = cost;
    }
  };

  for (const HeadChoice& head : head_choices(target.width, base, rules)) {
    const std::int64_t unit = width_unit(target.width, head.size, base, rules);
    const std::int64_t middle = std::llround(target.width / as_double(unit));
    for (std::int64_t step = std::max<std::int64_t>(1, middle - target.widths_each_side);
         step <= std::max<std::int64_t>(1, middle + target.widths_each_side); ++step) {
      ShapeRequest request = candidate_request(base, step * unit, head.size, rules);
      if (request.kv_heads > 0 && request.heads % request.kv_heads != 0) continue;
      // Depth that meets the budget at this width, from the count of one and of two layers.
      request.layers = 1;
      const double one = target.count(complete(request));
      request.layers = 2;
      const double per_layer = target.count(complete(request)) - one;
      const double wanted = std::max(1.0, 1 + (target.budget - one) / per_layer);
      for (const std::int64_t layers : depth_candidates(wanted, rules)) {
        request.layers = layers;
        consider(complete(request), head.cost);
      }
    }
  }
  if (!best) {
    throw ConfigError(
        fmt::format("no width near {:.0f} fits the rules; relax --width-multiple, --head-size or "
                    "--kv-group",
                    target.width));
  }
  return *best;
}

}  // namespace fathom
