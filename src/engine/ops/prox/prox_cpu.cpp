#include <algorithm>
#include <cmath>

#include "engine/cpu/cpu_ops.h"

namespace fathom::engine::cpu {
namespace {

struct Patch {  // a block of weights
  float* first;
  std::int64_t rows, cols, stride;
};

struct PatchGroup {
  std::vector<Patch> patches;
  double strength;

  template <class Visit>
  void each(const Visit& visit) const {
    for (const Patch& patch : patches) {
      for (std::int64_t row = 0; row < patch.rows; ++row) {
        float* values = patch.first + row * patch.stride;
        for (std::int64_t col = 0; col < patch.cols; ++col) visit(values[col]);
      }
    }
  }
};

void shrink_length(const PatchGroup& group, double mass) {
  double squares = 0;
  group.each([&](float value) { squares += static_cast<double>(value) * value; });
  const double norm = std::sqrt(squares);
  const auto factor = static_cast<float>(norm <= mass ? 0 : 1 - mass / norm);
  group.each([&](float& value) { value = factor == 0 ? 0 : value * factor; });
}

/// The level by Newton's method from below (Michelot 1986): the mass above a level is convex and
/// piecewise linear, so the level grows until the weights above it stay the same.
void level_down(const PatchGroup& group, double mass) {
  double level = -1;
  std::int64_t above = -1;
  for (std::int64_t before = 0; above != before;) {
    before = above;
    above = 0;
    double sum = 0;
    group.each([&](float value) {
      const double size = std::abs(static_cast<double>(value));
      if (size <= level) return;
      sum += size;
      ++above;
    });
    if (above == 0) break;  // rounding, where all are level already
    level = (sum - mass) / static_cast<double>(above);
    if (level <= 0) break;
  }
  const float limit = level <= 0 ? 0 : static_cast<float>(level);
  group.each([&](float& value) { value = limit == 0 ? 0 : std::clamp(value, -limit, limit); });
}

}  // namespace

BoundOp bind(const Prox& op, const Context& context) {
  std::vector<PatchGroup> groups;
  for (const ProxGroup& group : op.groups) {
    PatchGroup& bound = groups.emplace_back(PatchGroup{{}, group.strength});
    for (const ProxBlock& block : group.blocks) {
      const std::int64_t stride = context.tensor(block.parameter).cols;
      float* first = context.floats(block.parameter) + block.row * stride + block.col;
      bound.patches.push_back({first, block.rows, block.cols, stride});
    }
  }
  return [groups = std::move(groups), level = op.kind == ProxKind::linf1,
          threads = context.threads](const StepScalars& scalars) {
    const auto count = static_cast<std::int64_t>(groups.size());
    parallel_ranges(threads, count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const PatchGroup& group = groups[static_cast<std::size_t>(i)];
        const double mass = static_cast<double>(scalars.learning_rate) * group.strength;
        level ? level_down(group, mass) : shrink_length(group, mass);
      }
    });
  };
}

}  // namespace fathom::engine::cpu
