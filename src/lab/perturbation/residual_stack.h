// A stack of attention and feed-forward sublayers on the engine, with the factor omega of each
// residual connection free: what ADMIN (arXiv 2004.08249, 2008.07772) and its relatives change.
//
//   post-norm  x_i = LN(omega_i x_{i-1} + f_i(x_{i-1}))
//   pre-norm   x_i = x_{i-1} + f_i(LN(x_{i-1})), one more LN at the end
//
// f_i is causal softmax attention of H heads for odd i and a ReLU MLP of width 4d for even i, no
// biases, gains 1. Weights are Xavier normal: standard deviation sqrt(2 / (fan-in + fan-out)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device.h"
#include "engine/executor.h"

namespace fathom::lab {

enum class NormPlace : std::uint8_t { post, pre };

struct StackShape {
  std::size_t layers = 3;  // two sublayers each
  std::size_t width = 64;
  std::size_t heads = 4;
  std::size_t tokens = 16;
  std::size_t batch = 4;
  NormPlace norm = NormPlace::post;

  std::size_t sublayers() const { return 2 * layers; }
  std::size_t rows() const { return tokens * batch; }
  std::size_t elements() const { return rows() * width; }
};

/// The two matrices of a sublayer, row by row: qkv (3d x d) and out (d x d), or up (4d x d) and
/// down (d x 4d).
struct SublayerWeights {
  std::vector<float> in, out;
};
using StackWeights = std::vector<SublayerWeights>;

/// Fresh weights.
StackWeights draw_weights(const StackShape& shape, std::uint64_t seed, std::uint64_t stream);
/// The same with v, out, up and down multiplied by a gain (DeepNorm).
StackWeights with_branch_gain(const StackShape& shape, StackWeights weights, double gain);
/// N(0, 1) inputs.
std::vector<float> draw_inputs(const StackShape& shape, std::uint64_t seed);
/// weights + epsilon direction.
StackWeights perturbed(const StackWeights& weights, const StackWeights& direction, double epsilon);

/// The whole stack as one plan; omegas are part of it (post-norm; empty: all 1).
class ResidualStack {
 public:
  ResidualStack(const StackShape& shape, const std::vector<double>& omegas,
                const engine::Device& device);
  ~ResidualStack();

  /// The output for these weights and inputs. `gains`: factors of the norm after each sublayer
  /// (post-norm; empty: all 1).
  std::vector<float> run(const StackWeights& weights, const std::vector<float>& inputs,
                         const std::vector<double>& gains = {});
  /// Variance over all elements of every branch f_i in the last run.
  std::vector<double> branch_variances() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

double variance(const std::vector<float>& values);

}  // namespace fathom::lab
