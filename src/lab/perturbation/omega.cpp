#include "lab/perturbation/omega.h"

#include <cmath>

#include "model/parametrisation.h"

namespace fathom::lab {
namespace {

model::ModelSpec spec_of(Scheme scheme, std::size_t layers) {
  model::ModelSpec spec;
  spec.layers = static_cast<std::int64_t>(layers);
  spec.norm = model::NormPlace::post;
  spec.depth_scheme =
      scheme == Scheme::deepnorm ? model::DepthScheme::deepnorm : model::DepthScheme::admin;
  return spec;
}

void scale(std::vector<float>& values, double factor) {
  for (float& value : values) value = static_cast<float>(value * factor);
}

}  // namespace

std::vector<double> fixed_omegas(Scheme scheme, std::size_t layers) {
  if (scheme != Scheme::closed && scheme != Scheme::deepnorm) return {};
  return std::vector<double>(2 * layers, model::stream_multiplier(spec_of(scheme, layers)));
}

double branch_gain(Scheme scheme, std::size_t layers) {
  if (scheme != Scheme::deepnorm) return 1;
  // The model's rule for a square matrix over Xavier's sqrt(2 / (1 + 1)).
  return model::scaling_of(spec_of(scheme, layers), model::Role::branch_output, 1, 1).init_std;
}

std::vector<double> profile_omegas(const StackShape& shape, const StackWeights& weights,
                                   const std::vector<float>& inputs, const engine::Device& device,
                                   std::vector<double>* variances) {
  // A layer at a time, on one plan: omegas are folded into weights and gains. The first branch does
  // not depend on the second omega, which follows from it.
  StackShape one = shape;
  one.layers = 1;
  ResidualStack stack(one, {}, device);
  std::vector<double> omegas{1};
  std::vector<double> found;
  std::vector<float> x = inputs;
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    const StackWeights pair(weights.begin() + static_cast<std::ptrdiff_t>(2 * layer),
                            weights.begin() + static_cast<std::ptrdiff_t>(2 * layer + 2));
    const auto run = [&](double first, double second) {
      const FoldedStack folded = fold_omegas(pair, x, {first, second});
      return stack.run(folded.weights, folded.inputs, folded.gains);
    };
    const double first = omegas.back();
    run(first, 1);
    found.push_back(stack.branch_variances()[0]);
    const double second = std::sqrt(first * first * variance(x) + found.back());
    omegas.push_back(second);
    x = run(first, second);
    found.push_back(stack.branch_variances()[1]);
    // After a norm of gain 1 the elements have variance 1.
    omegas.push_back(std::sqrt(second * second + found.back()));
  }
  omegas.pop_back();
  if (variances != nullptr) *variances = found;
  return omegas;
}

FoldedStack fold_omegas(const StackWeights& weights, const std::vector<float>& inputs,
                        const std::vector<double>& omegas) {
  FoldedStack folded{weights, inputs, std::vector<double>(weights.size(), 1)};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    scale(folded.weights[i].in, 1 / omegas[i]);
    if (i > 0) folded.gains[i - 1] = omegas[i];
  }
  scale(folded.inputs, omegas[0]);
  return folded;
}

}  // namespace fathom::lab
