#include "shape/rounding.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <optional>

#include "core/error.h"

namespace fathom {
namespace {

constexpr int kWidthsEachSide = 6;
constexpr double kOddHeadsCost = 0.03;

/// Head size for a width under the rules; 0 when the width does not fit them.
std::int64_t head_size_for(std::int64_t width, const RoundingRules& rules) {
  std::int64_t size = rules.head_size > 0 ? rules.head_size : usual_head_size(width);
  if (width % size != 0) return 0;
  // More tensor-parallel ranks than heads of the usual size: take smaller heads.
  while (rules.head_size == 0 && size > 16 && (width / size) % rules.tensor_parallel != 0) {
    size /= 2;
  }
  return (width / size) % rules.tensor_parallel == 0 ? size : 0;
}

ShapeRequest candidate_request(const ShapeRequest& base, std::int64_t width,
                               const RoundingRules& rules) {
  ShapeRequest request = base;
  request.width = width;
  request.head_size = head_size_for(width, rules);
  request.heads = request.head_size > 0 ? width / request.head_size : 0;
  request.ffn = feed_forward_width(request, rules.tensor_parallel);
  return request;
}

/// Whole depths near the real one that keep the pipeline rule and the limit.
std::vector<std::int64_t> depth_candidates(double layers, const RoundingRules& rules) {
  const std::int64_t unit = rules.pipeline_parallel;
  std::int64_t most = rules.max_layers > 0 ? rules.max_layers / unit * unit : 0;
  std::vector<std::int64_t> depths;
  const std::int64_t below = static_cast<std::int64_t>(layers / static_cast<double>(unit)) * unit;
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
  std::int64_t unit =
      rules.width_multiple > 0 ? rules.width_multiple : friendly_width_multiple(target.width);
  if (rules.head_size > 0) unit = std::lcm(unit, rules.head_size);
  if (rules.tensor_parallel > 1) unit = std::lcm(unit, 16 * rules.tensor_parallel);

  std::optional<Shape> best;
  double best_cost = 0;
  const std::int64_t middle = std::llround(target.width / static_cast<double>(unit));
  for (std::int64_t step = middle - kWidthsEachSide; step <= middle + kWidthsEachSide; ++step) {
    if (step < 1) continue;
    ShapeRequest request = candidate_request(base, step * unit, rules);
    if (request.head_size == 0) continue;
    const std::int64_t kv_heads =
        request.kv_heads > 0 ? request.kv_heads : request.heads / request.kv_group;
    if (kv_heads < 1 || request.heads % kv_heads != 0 || request.heads % request.kv_group != 0 ||
        kv_heads % rules.tensor_parallel != 0) {
      continue;
    }
    // Depth that meets the budget at this width, from the count of one and of two layers.
    request.layers = 1;
    const double one = target.count(complete(request));
    request.layers = 2;
    const double per_layer = target.count(complete(request)) - one;
    const double wanted = 1 + (target.budget - one) / per_layer;
    for (const std::int64_t layers : depth_candidates(std::max(wanted, 1.0), rules)) {
      request.layers = layers;
      const Shape shape = complete(request);
      const double off_budget = std::fabs(std::log(target.count(shape) / target.budget));
      const double off_depth = std::fabs(std::log(static_cast<double>(layers) / target.layers));
      // An odd number of heads can be split over no even number of devices.
      const double awkward = shape.heads > 1 && shape.heads % 2 == 1 ? kOddHeadsCost : 0;
      const double cost = off_budget + 0.5 * off_depth + awkward;
      if (!best || cost < best_cost) {
        best = shape;
        best_cost = cost;
      }
    }
  }
  if (!best) {
    throw ConfigError(
        fmt::format("no width near {:.0f} is a multiple of {} with heads divisible by {}; relax "
                    "--width-multiple, "
                    "--head-size or --tensor-parallel",
                    target.width, unit, rules.tensor_parallel));
  }
  return *best;
}

}  // namespace fathom
