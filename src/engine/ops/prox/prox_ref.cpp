#include <algorithm>
#include <cmath>

#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {
namespace {

std::vector<double*> weights_of(const ProxGroup& group, const Context& context) {
  std::vector<double*> weights;
  for (const ProxBlock& block : group.blocks) {
    double* first = context.data(block.parameter);
    const std::int64_t stride = context.tensor(block.parameter).cols;
    for (std::int64_t r = block.row; r < block.row + block.rows; ++r) {
      for (std::int64_t c = block.col; c < block.col + block.cols; ++c) {
        weights.push_back(first + r * stride + c);
      }
    }
  }
  return weights;
}

void shrink_length(const std::vector<double*>& weights, double mass) {
  double squares = 0;
  for (const double* weight : weights) squares += *weight * *weight;
  const double norm = std::sqrt(squares);
  for (double* weight : weights) *weight = norm <= mass ? 0 : *weight * (1 - mass / norm);
}

/// Levels the largest magnitudes down, one after the other, until `mass` is spent.
void level_down(const std::vector<double*>& weights, double mass) {
  std::vector<double> sizes;
  for (const double* weight : weights) sizes.push_back(std::abs(*weight));
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  double level = 0;
  double sum = 0;
  for (std::size_t m = 1; m <= sizes.size(); ++m) {
    sum += sizes[m - 1];
    level = std::max(0.0, (sum - mass) / static_cast<double>(m));  // of the m largest together
    if (m < sizes.size() && level >= sizes[m]) break;
  }
  for (double* weight : weights) {
    *weight = level == 0 ? 0 : std::clamp(*weight, -level, level);
  }
}

}  // namespace

void run(const Prox& op, const Context& context) {
  for (const ProxGroup& group : op.groups) {
    const double mass = static_cast<double>(context.scalars.learning_rate) * group.strength;
    const std::vector<double*> weights = weights_of(group, context);
    op.kind == ProxKind::l21 ? shrink_length(weights, mass) : level_down(weights, mass);
  }
}

}  // namespace fathom::engine::ref
