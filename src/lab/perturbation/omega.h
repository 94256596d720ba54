// The factors omega of residual connections that training schemes for deep post-norm networks use.
//
//   none      1
//   admin     omega_1 = 1, omega_{i+1}^2 = Var(omega_i x_{i-1}) + Var(f_i(x_{i-1})), measured
//             in one forward pass (profiling)
//   closed    sqrt((n + 1) / ln(n + 1) - 1) for n sublayers
//   deepnorm  n^(1/4), with weights of v, out, up and down times (4 n)^(-1/4) (arXiv 2203.00555)
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/enum_names.h"
#include "lab/perturbation/residual_stack.h"

namespace fathom::lab {

enum class Scheme : std::uint8_t { post, pre, admin, closed, deepnorm };
constexpr auto enum_names(Scheme) {
  return std::array{"post-norm", "pre-norm", "ADMIN profiled", "ADMIN closed form", "DeepNorm"};
}

/// Omegas of the schemes that do not depend on the data; empty for all 1.
std::vector<double> fixed_omegas(Scheme scheme, std::size_t layers);
/// Factor on the standard deviation of branch weights.
double branch_gain(Scheme scheme, std::size_t layers);

/// ADMIN's profiling pass. `variances`: Var f_i, if asked for.
std::vector<double> profile_omegas(const StackShape& shape, const StackWeights& weights,
                                   const std::vector<float>& inputs, const engine::Device& device,
                                   std::vector<double>* variances = nullptr);

/// The same function without omegas: each is moved into the gain of the preceding norm (the inputs
/// for the first) and divided out of the weights that read from it.
struct FoldedStack {
  StackWeights weights;
  std::vector<float> inputs;
  std::vector<double> gains;  // of the norm after each sublayer
};
FoldedStack fold_omegas(const StackWeights& weights, const std::vector<float>& inputs,
                        const std::vector<double>& omegas);

}  // namespace fathom::lab
