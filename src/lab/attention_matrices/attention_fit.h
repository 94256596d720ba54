// How well one head of a given size can be fitted to an attention matrix by gradient descent.
//
// Minimises the mean over rows of KL(P_i || softmax_i), the softmax being that of the scores A B^T
// with A and B of n x r: for tokens of full column rank this covers every head of size r. Rows of a
// causal target use only the keys j <= i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace fathom::lab {

struct AttentionTarget {
  std::size_t tokens = 0;
  bool causal = false;
  std::vector<double> weights;  // n x n, rows sum to 1, positive where a key is seen

  bool sees(std::size_t query, std::size_t key) const { return !causal || key <= query; }
};

/// Softmax of N(0, 1) scores: a matrix without structure.
AttentionTarget random_target(std::size_t tokens, bool causal, std::uint64_t seed);

/// Mean KL divergence of the scores from the target and its gradient in the scores.
double mean_divergence(const AttentionTarget& target, const std::vector<double>& scores,
                       std::vector<double>* gradient = nullptr);

struct AttentionFit {
  double divergence = 0;  // the smallest reached
  std::size_t steps = 0;
};

/// Adam with a cosine-decayed rate from small random factors.
AttentionFit fit_head(const AttentionTarget& target, std::size_t head_size, std::size_t steps,
                      std::uint64_t seed, const std::function<void(double)>& tick = {});

}  // namespace fathom::lab
