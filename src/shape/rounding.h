// Rounds a real-valued (layers, width) to a hardware-friendly shape near a budget.
//
// Rules (NVIDIA's tile rules and arXiv 2401.14489): width a multiple of 128 where the model is wide
// enough, 64 below, and of the head size; feed-forward a multiple of 128 (64 below width 1024);
// vocabulary a multiple of 64 times the tensor-parallel degree. Depth absorbs what rounding the
// width leaves over.
#pragma once

#include <cstdint>
#include <functional>

#include "shape/shape.h"

namespace fathom {

struct RoundingRules {
  std::int64_t width_multiple = 0;     // 0: 128 from width 1024 on, 64 below, 32 below 192
  std::int64_t head_size = 0;          // 0: the usual one
  std::int64_t max_layers = 0;         // 0: no limit
  std::int64_t tensor_parallel = 1;    // heads, kv heads and ffn divisible by it
  std::int64_t pipeline_parallel = 1;  // layers divisible by it
};

struct RoundingTarget {
  double layers = 0;
  double width = 0;
  double budget = 0;
  std::int64_t widths_each_side = 6;  // of the target width, in steps of the width multiple
  /// The count the budget is in, for a candidate.
  std::function<double(const Shape&)> count;
};

std::int64_t friendly_width_multiple(double width);
std::int64_t round_vocab(std::int64_t vocab, std::int64_t tensor_parallel);

/// The candidate nearest the target. Both in logarithms, the budget error counts fully and the
/// distance from the target depth half; an odd number of heads counts as 3 %, each halving of the
/// usual head size as 10 %. `base` has everything but layers, width, heads and ffn. ConfigError
/// when no width fits the rules.
Shape round_to_hardware(const RoundingTarget& target, const ShapeRequest& base,
                        const RoundingRules& rules);

}  // namespace fathom
