// The lattice of hardware-friendly shapes, and the shape on it that spends a budget at a depth.
//
// Depths are m 2^k with m in {8, 9, 10, 12, 14} (and 1 to 8, 10, 12, 14), so that they divide over
// pipeline stages; a depth is also friendly when its number of layers per stage is. Widths have
// eight steps per octave (1024, 1152, ..., 2048, 2304, ...), multiples of 64 below 1024, 32 below
// 512, 16 below 128. Heads are of size 64, 128 from width 1536 on, 32 or 48 in narrow shapes; an
// even number with no large odd factor is preferred (NVIDIA's tile rules and arXiv 2401.14489). The
// vocabulary is a multiple of 64 times the tensor-parallel degree. What rounding leaves of the
// budget goes to the feed-forward, up to a fifth either way (three tenths below width 512), unless
// its ratio was asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "shape/shape.h"

namespace fathom {

struct RoundingRules {
  std::int64_t width_multiple = 0;     // 0: the lattice's own
  std::int64_t head_size = 0;          // 0: the usual one
  std::int64_t max_layers = 0;         // 0: no limit
  std::int64_t tensor_parallel = 1;    // heads, kv heads and ffn divisible by it
  std::int64_t pipeline_parallel = 1;  // layers divisible by it
};

struct RoundingTarget {
  std::int64_t layers = 0;
  double width = 0;  // that spends the budget at this depth
  double budget = 0;
  /// The count the budget is in, for a candidate.
  std::function<double(const Shape&)> count;
};

/// The friendly depths from `low` to `high` that keep the pipeline rule and the depth limit,
/// ascending; `fine` adds the even ones, for shapes whose feed-forward cannot absorb the rest.
std::vector<std::int64_t> friendly_depths(double low, double high, const RoundingRules& rules,
                                          bool fine = false);

/// Distance between neighbouring widths of the lattice.
std::int64_t width_step(double width);
std::int64_t round_vocab(std::int64_t vocab, std::int64_t tensor_parallel);
/// Whether the feed-forward may absorb what rounding leaves.
bool feed_forward_is_free(const ShapeRequest& base);

/// The best shape of this depth, nothing where no width fits the rules. In logarithms, the budget
/// error counts fully and a trimmed feed-forward a tenth; an odd number of heads counts as 10 %, a
/// number with a large odd factor or an unusual head size as 1 %. `base` has everything but layers,
/// width, heads and ffn.
std::optional<Shape> shape_at_depth(const RoundingTarget& target, const ShapeRequest& base,
                                    const RoundingRules& rules);

}  // namespace fathom
