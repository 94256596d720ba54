#include "lab/attention_matrices/attention_fit.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/random.h"

namespace fathom::lab {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// One factor under Adam.
class AdamFactor {
 public:
  AdamFactor(Eigen::Index rows, Eigen::Index columns, const RandomStream& random,
             std::uint64_t first)
      : values(rows, columns),
        mean_(RowMatrix::Zero(rows, columns)),
        square_(RowMatrix::Zero(rows, columns)) {
    const double deviation = 1 / std::sqrt(static_cast<double>(columns));
    for (Eigen::Index i = 0; i < values.size(); ++i) {
      values.data()[i] = deviation * random.normal(first + static_cast<std::uint64_t>(i));
    }
  }

  void step(const RowMatrix& gradient, double rate, double t) {
    constexpr double kBeta1 = 0.9;
    constexpr double kBeta2 = 0.999;
    constexpr double kEpsilon = 1e-12;
    mean_ = kBeta1 * mean_ + (1 - kBeta1) * gradient;
    square_ = kBeta2 * square_ + (1 - kBeta2) * gradient.cwiseProduct(gradient);
    const double first = 1 - std::pow(kBeta1, t);
    const double second = 1 - std::pow(kBeta2, t);
    values.array() -=
        rate * (mean_.array() / first) / ((square_.array() / second).sqrt() + kEpsilon);
  }

  RowMatrix values;

 private:
  RowMatrix mean_, square_;
};

}  // namespace

AttentionTarget random_target(std::size_t tokens, bool causal, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 0x746172676574;  // "target"
  const RandomStream random(seed, kStream);
  AttentionTarget target{tokens, causal, std::vector<double>(tokens * tokens, 0)};
  for (std::size_t i = 0; i < tokens; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < tokens; ++j) {
      if (!target.sees(i, j)) continue;
      sum += target.weights[i * tokens + j] = std::exp(random.normal(i * tokens + j));
    }
    for (std::size_t j = 0; j < tokens; ++j) target.weights[i * tokens + j] /= sum;
  }
  return target;
}

double mean_divergence(const AttentionTarget& target, const std::vector<double>& scores,
                       std::vector<double>* gradient) {
  const std::size_t n = target.tokens;
  double total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double largest = -1e300;
    for (std::size_t j = 0; j < n; ++j) {
      if (target.sees(i, j)) largest = std::max(largest, scores[i * n + j]);
    }
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      if (target.sees(i, j)) sum += std::exp(scores[i * n + j] - largest);
    }
    const double log_sum = largest + std::log(sum);
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t at = i * n + j;
      if (!target.sees(i, j)) {
        if (gradient != nullptr) (*gradient)[at] = 0;
        continue;
      }
      const double p = target.weights[at];
      total += p * (std::log(p) - (scores[at] - log_sum));
      if (gradient != nullptr) {
        (*gradient)[at] = (std::exp(scores[at] - log_sum) - p) / static_cast<double>(n);
      }
    }
  }
  return total / static_cast<double>(n);
}

AttentionFit fit_head(const AttentionTarget& target, std::size_t head_size, std::size_t steps,
                      std::uint64_t seed, const std::function<void(double)>& tick) {
  constexpr std::uint64_t kStream = 0x666974;  // "fit"
  constexpr double kRate = 0.05;
  constexpr double kDone = 1e-10;
  const auto n = static_cast<Eigen::Index>(target.tokens);
  const auto r = static_cast<Eigen::Index>(head_size);
  const RandomStream random(seed, kStream);
  AdamFactor queries(n, r, random, 0);
  AdamFactor keys(n, r, random, static_cast<std::uint64_t>(n * r));
  std::vector<double> scores(target.weights.size());
  std::vector<double> slopes(target.weights.size());
  Eigen::Map<RowMatrix> score_map(scores.data(), n, n);
  Eigen::Map<RowMatrix> slope_map(slopes.data(), n, n);
  AttentionFit fit;
  fit.divergence = std::numeric_limits<double>::infinity();
  for (; fit.steps < steps && fit.divergence > kDone; ++fit.steps) {
    score_map.noalias() = queries.values * keys.values.transpose();
    fit.divergence = std::min(fit.divergence, mean_divergence(target, scores, &slopes));
    const double share = static_cast<double>(fit.steps) / static_cast<double>(steps);
    const double rate = kRate * 0.5 * (1 + std::cos(std::numbers::pi * share));
    const RowMatrix query_slope = slope_map * keys.values;
    const RowMatrix key_slope = slope_map.transpose() * queries.values;
    const auto t = static_cast<double>(fit.steps + 1);
    queries.step(query_slope, rate, t);
    keys.step(key_slope, rate, t);
    if (tick && fit.steps % 256 == 0) tick(share);
  }
  return fit;
}

}  // namespace fathom::lab
