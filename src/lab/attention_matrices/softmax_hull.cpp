#include "lab/attention_matrices/softmax_hull.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace fathom::lab {
namespace {

constexpr std::size_t kMaxTokens = 16;

std::vector<double> input(std::size_t bits, std::size_t tokens) {
  std::vector<double> x(tokens);
  for (std::size_t j = 0; j < tokens; ++j) x[j] = (bits >> j & 1) != 0 ? 1 : -1;
  return x;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

/// Weights of a head that brings its scores to mean 0 and variance 1, then scales and shifts them.
std::vector<double> normalised_weights(const std::vector<double>& scores, double gamma,
                                       double beta) {
  const auto n = static_cast<double>(scores.size());
  const double mean = sum_of(scores) / n;
  double variance = 0;
  for (const double score : scores) variance += (score - mean) * (score - mean) / n;
  std::vector<double> weights;
  for (const double score : scores) {
    weights.push_back(gamma * (score - mean) / std::sqrt(variance) + beta);
  }
  return weights;
}

std::vector<double> softmax_weights(const std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> weights;
  for (const double score : scores) weights.push_back(std::exp(score - largest));
  const double total = sum_of(weights);
  for (double& weight : weights) weight /= total;
  return weights;
}

/// The weights of one sign from one softmax head: scores log |w_j|, the others far below; scaled by
/// their sum.
std::vector<double> one_sign_head(const std::vector<double>& weights, double sign) {
  constexpr double kFarBelow = -200;
  std::vector<double> scores;
  double gain = 0;
  for (const double weight : weights) {
    const bool mine = weight * sign > 0;
    scores.push_back(mine ? std::log(weight * sign) : kFarBelow);
    if (mine) gain += weight;
  }
  std::vector<double> head = softmax_weights(scores);
  for (double& value : head) value *= gain;
  return head;
}

double largest_error(const std::vector<double>& weights, const std::vector<double>& found) {
  double error = 0;
  for (std::size_t bits = 0; bits < std::size_t{1} << weights.size(); ++bits) {
    const std::vector<double> x = input(bits, weights.size());
    error = std::max(error, std::fabs(dot(found, x) - dot(weights, x)));
  }
  return error;
}

}  // namespace

double softmax_floor(const std::vector<double>& weights, double* gain) {
  const std::size_t n = weights.size();
  const std::size_t inputs = std::size_t{1} << n;
  std::vector<double> targets;  // |w.x| of inputs that are not constant
  for (std::size_t bits = 1; bits + 1 < inputs; ++bits) {
    targets.push_back(std::fabs(dot(weights, input(bits, n))));
  }
  std::sort(targets.begin(), targets.end(), std::greater<>());
  const double wanted = std::fabs(sum_of(weights));
  // The error is convex and piecewise quadratic in g: with the k largest targets above g its least
  // value lies at (2 |W| + their sum) / (2 + k), if that is between the k-th and the next target.
  double sum = 0;
  double best = wanted;
  for (std::size_t k = 0; k <= targets.size(); ++k) {
    const double g = (2 * wanted + sum) / (2 + static_cast<double>(k));
    const double next = k < targets.size() ? targets[k] : 0;
    if (g >= next) {
      best = g;
      break;
    }
    sum += targets[k];
  }
  double error = 2 * (best - wanted) * (best - wanted);
  for (const double target : targets) {
    error += std::pow(std::max(0.0, target - best), 2);
  }
  if (gain != nullptr) *gain = best;
  return error / static_cast<double>(inputs);
}

HullResult measure_hull(const std::vector<double>& weights) {
  if (weights.size() < 2 || weights.size() > kMaxTokens) {
    throw ConfigError(
        fmt::format("--weights must name 2 to {} numbers, not {}", kMaxTokens, weights.size()));
  }
  const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
  if (*least == *most) {
    throw ConfigError("--weights must not all be equal: normalised scores would be undefined");
  }
  HullResult result;
  result.floor = softmax_floor(weights, &result.gain);
  for (const double weight : weights) result.variance += weight * weight;
  const auto n = static_cast<double>(weights.size());
  const double mean = sum_of(weights) / n;
  double variance = 0;
  for (const double weight : weights) variance += (weight - mean) * (weight - mean) / n;
  result.normalised_error =
      largest_error(weights, normalised_weights(weights, std::sqrt(variance), mean));
  std::vector<double> both(weights.size(), 0);
  for (const double sign : {1.0, -1.0}) {
    const bool any = std::any_of(weights.begin(), weights.end(),
                                 [&](double weight) { return weight * sign > 0; });
    if (!any) continue;
    const std::vector<double> head = one_sign_head(weights, sign);
    for (std::size_t j = 0; j < both.size(); ++j) both[j] += head[j];
  }
  result.two_head_error = largest_error(weights, both);
  return result;
}

}  // namespace fathom::lab
