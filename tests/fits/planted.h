// Synthetic runs with a known answer.
//
// Transitions: ln loss of the k-th depth is a common curve less the sum of gains
//   s (1 - e^(-(x - x_j) / tau)) over the neighbouring pairs j <= k,  x = ln N,
// so depth k starts to beat depth k - 1 exactly at x_k, the size at which d = e^(a + bL) spends N.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "core/random.h"
#include "fits/joint_form.h"
#include "fits/run_point.h"

namespace fathom::fits {

/// Normal variates by index (Box-Muller).
class NormalStream {
 public:
  NormalStream(std::uint64_t seed, std::uint64_t stream) : random_(seed, stream) {}
  double operator()() {
    const double u = 1 - random_.uniform(next_++);
    const double v = random_.uniform(next_++);
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }

 private:
  RandomStream random_;
  std::uint64_t next_ = 0;
};

struct PlantedTransitions {
  double a = 4.2;
  double b = 0.08;
  std::vector<std::int64_t> depths{2, 3, 6, 10, 14};
  double smallest = 6e4;  // sizes, evenly in ln N
  double largest = 4e7;
  int sizes = 7;
  int seeds = 1;
  double noise = 0.002;
  double deepest_noise = 1;  // of the deepest depth, in units of the others'
  double gain = 0.03;
  double tau = 4;

  double crossing(std::size_t k) const {
    const auto layers = static_cast<double>(depths[k]);
    return std::log(12 * layers) + 2 * (a + b * layers);
  }

  std::vector<RunPoint> draw(std::uint64_t draw) const {
    NormalStream normal(draw, 77);
    std::vector<RunPoint> points;
    for (std::size_t k = 0; k < depths.size(); ++k) {
      for (int i = 0; i < sizes; ++i) {
        const double target =
            std::log(smallest) + std::log(largest / smallest) * i / std::max(1, sizes - 1);
        // Widths are whole multiples of 4, so sizes do not match exactly between depths.
        const auto layers = static_cast<double>(depths[k]);
        const double width =
            std::max(4.0, 4 * std::round(std::sqrt(std::exp(target) / (12 * layers)) / 4));
        const double params = 12 * layers * width * width;
        const double x = std::log(params);
        double log_loss = std::log(1.7 + 90 * std::pow(params, -0.34));
        for (std::size_t j = 1; j <= k; ++j) {
          log_loss -= gain * (1 - std::exp(-(x - crossing(j)) / tau));
        }
        const double own = k + 1 == depths.size() ? deepest_noise : 1;
        for (int seed = 0; seed < seeds; ++seed) {
          points.push_back({"planted", depths[k], std::llround(width), params, 20e6,
                            std::exp(log_loss + noise * own * normal()),
                            static_cast<std::uint64_t>(seed)});
        }
      }
    }
    return points;
  }
};

/// Runs of a grid of shapes and token counts under a joint law, with relative noise.
struct PlantedJoint {
  JointLaw law;
  std::vector<std::int64_t> depths{2, 4, 8, 16, 32};
  std::vector<std::int64_t> widths{64, 128, 256, 512};
  std::vector<double> tokens{2e8, 8e8, 3.2e9};
  double noise = 0.002;

  std::vector<RunPoint> draw(std::uint64_t draw) const {
    NormalStream normal(draw, 78);
    std::vector<RunPoint> points;
    for (const std::int64_t layers : depths) {
      for (const std::int64_t width : widths) {
        for (const double count : tokens) {
          const auto L = static_cast<double>(layers);
          const auto D = static_cast<double>(width);
          const double params = 12 * L * D * D;
          points.push_back({"planted", layers, width, params, count,
                            law.loss(L, D, params, count) * std::exp(noise * normal()), 0});
        }
      }
    }
    return points;
  }
};

}  // namespace fathom::fits
