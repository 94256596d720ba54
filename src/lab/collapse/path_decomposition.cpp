#include "lab/collapse/path_decomposition.h"

#include <cmath>

#include "core/error.h"
#include "lab/collapse/double_double.h"
#include "lab/collapse/stack.h"

namespace fathom::lab {
namespace {

using Tokens = Matrix<DoubleDouble>;

/// One head with its attention frozen: x -> A x Wv Wo.
struct FrozenHead {
  Tokens weights;
  const HeadWeights* head;

  Tokens apply(const Tokens& x) const {
    return product(product(weights, product(x, head->value)), head->output);
  }
};

class PathSum {
 public:
  PathSum(const std::vector<std::vector<FrozenHead>>& layers, const Tokens& like,
          const std::function<void(double)>& look)
      : layers_(layers), look_(look), sum_(like.rows, like.columns), lengths_(layers.size() + 1) {
    for (const auto& heads : layers) all_ *= static_cast<double>(heads.size() + 1);
  }

  void walk(std::size_t layer, std::size_t length, const Tokens& x) {
    if (layer == layers_.size()) {
      PathLength& entry = lengths_[length];
      ++entry.paths;
      entry.relative_residual += std::pow(10.0, log10_rho(x));
      add_to(sum_, x);
      if (look_) look_(++done_ / all_);
      return;
    }
    walk(layer + 1, length, x);
    for (const FrozenHead& head : layers_[layer]) walk(layer + 1, length + 1, head.apply(x));
  }

  const Tokens& sum() const { return sum_; }
  std::vector<PathLength> lengths() const {
    std::vector<PathLength> means = lengths_;
    for (std::size_t l = 0; l < means.size(); ++l) {
      means[l].length = l;
      means[l].relative_residual /= static_cast<double>(means[l].paths);
    }
    return means;
  }

 private:
  const std::vector<std::vector<FrozenHead>>& layers_;
  const std::function<void(double)>& look_;
  double all_ = 1;
  double done_ = 0;
  Tokens sum_;
  std::vector<PathLength> lengths_;
};

}  // namespace

PathDecomposition decompose_paths(const StackSpec& spec, const StackDraw& draw,
                                  const std::function<void(double)>& look) {
  if (!spec.skip || spec.norm || spec.mlp) {
    throw InternalError("paths add up for skips without norm and MLP only");
  }
  const Tokens start = stack_input<DoubleDouble>(spec, draw);
  Tokens x = start;
  std::vector<std::vector<FrozenHead>> layers;
  for (const LayerWeights& layer : draw.layers) {
    std::vector<FrozenHead> heads;
    for (const HeadWeights& head : layer.heads) {
      heads.push_back({attention_weights(spec, head, x), &head});
    }
    layers.push_back(std::move(heads));
    apply_layer(spec, layer, x);
  }
  PathSum paths(layers, x, look);
  paths.walk(0, 0, start);
  Tokens difference = paths.sum();
  for (std::size_t i = 0; i < x.values.size(); ++i) difference.values[i] -= x.values[i];
  return {paths.lengths(), std::pow(10.0, log10_size(difference) - log10_size(x))};
}

}  // namespace fathom::lab
