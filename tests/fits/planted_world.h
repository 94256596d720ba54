// Studies drawn from a known loss surface: the simulator behind the tests of surface and design and
// behind bench/planted_truth.
//
//   ln loss = level(N, T) + k(x) bowl(ln L - u*(x, T)) + bend(x, ln L) + noise
//
// The law of the best depth u*, the bowl's shape, the noise of each depth, a wild depth, a bend
// that no fitted form knows and the training lengths are set apart; the truth (best depth,
// crossings) is found on the surface itself, bend included.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numbers>
#include <optional>
#include <vector>

#include "core/random.h"
#include "fits/depth_law.h"
#include "fits/run_point.h"

namespace fathom::fits {

/// A shape with its repeats.
struct PlannedShape {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  int seeds = 1;
};

struct PlantedWorld {
  // The law of the best depth.
  LawForm law = LawForm::exponential;
  double a = 4.7;
  double b = 0.14;
  double depth_at_3m = 4.4;  // of the power and ratio laws
  double slope = 0.4;        // of the power law: L* ~ N^slope

  // The bowl. `linex`: the fitted form. `two_powers`: additive terms in width and depth, as in
  // arXiv 2502.06857, e^(pv)/p + e^(-qv)/q. `quartic`: v^2/2 + v^4/24.
  enum class Bowl { linex, two_powers, quartic } bowl = Bowl::linex;
  double curvature = 0.025;  // at 3M
  double curvature_slope = -0.15;
  double asymmetry = -0.5;
  double two_powers_deep = 0.25;
  double two_powers_shallow = 0.75;

  // Level: 1.9 + 11.5 N^-0.16, with a knee of this depth at 2M.
  double knee = 0;
  double length_gain = 0.05;     // of ln loss for e times the tokens, at 3M
  double length_gain_slope = 0;  // its change for e times the size
  double length_gain_bend = 0;   // and that change's

  double noise = 0.002;
  double noise_size_slope = 0;                 // ln noise falls by this for e times the size
  double noise_length_slope = 0;               // and by this for e times the tokens
  std::map<std::int64_t, double> noise_times;  // by depth
  double shape_noise = 0;                      // common to the seeds of a shape
  double bend = 0;                             // rms of the unknown part

  std::vector<double> tokens{1e8};  // lengths, each seed at all of them
  double move = 0;                  // N_transition ~ T^move, from the longest
  double drift = 0;               // of the exponential law's ln slope at 3M, for e times the tokens
  double trajectory_share = 0.6;  // of the variance, common to the lengths of a seed

  std::vector<PlannedShape> shapes;

  double best_log_depth(double x, double z = 0) const {
    const double y = x - move * z;
    if (law == LawForm::ratio) return std::log(depth_at_3m) + (y - std::log(3e6)) / 3;
    if (law == LawForm::power) return std::log(depth_at_3m) + slope * (y - std::log(3e6));
    if (drift == 0 || z == 0) return solve_exponential(a, b, y);
    // The law turned about its best depth at 3M.
    const double u = solve_exponential(a, b, std::log(3e6));
    const double layers = std::exp(u);
    const double turned = (std::exp(-drift * z) * (1 + 2 * b * layers) - 1) / (2 * layers);
    return solve_exponential(a + (b - turned) * layers, turned, y);
  }

  /// ln L that is best at ln N = y when ln d = a + b L.
  static double solve_exponential(double a, double b, double y) {
    double low = -5;
    double high = 8;
    for (int i = 0; i < 60; ++i) {
      const double u = (low + high) / 2;
      (std::log(12.0) + u + 2 * a + 2 * b * std::exp(u) < y ? low : high) = u;
    }
    return (low + high) / 2;
  }

  double bowl_at(double v) const {
    if (bowl == Bowl::quartic) return v * v / 2 + v * v * v * v / 24;
    if (bowl == Bowl::two_powers) {
      const double p = two_powers_deep;
      const double q = two_powers_shallow;
      return (std::expm1(p * v) / p + std::expm1(-q * v) / q) / (p + q);
    }
    const double r = asymmetry;
    return std::fabs(r) < 1e-6 ? v * v / 2 : (std::expm1(r * v) - r * v) / (r * r);
  }

  /// Three waves with directions and phases drawn for this world.
  double bend_at(double x, double u, std::uint64_t draw) const {
    if (bend == 0) return 0;
    const RandomStream random(draw, 4711);
    double sum = 0;
    for (std::uint64_t k = 0; k < 3; ++k) {
      const double along_x = 0.5 + random.uniform(3 * k);        // waves of 4 to 12 in ln N
      const double along_u = 1 + 2 * random.uniform(3 * k + 1);  // of 2 to 6 in ln L
      const double phase = 2 * std::numbers::pi * random.uniform(3 * k + 2);
      sum += std::sin(along_x * x + along_u * u + phase);
    }
    return bend * sum * std::sqrt(2.0 / 3);
  }

  double log_loss(double x, double u, double z, std::uint64_t draw) const {
    const double off = x - std::log(3e6);
    const double gain = length_gain + length_gain_slope * off + length_gain_bend * off * off;
    const double level = std::log(1.9 + 11.5 * std::exp(-0.16 * x)) - gain * z -
                         knee * std::log1p(std::exp(2 * (x - std::log(2e6)))) / 2;
    const double log_curvature = std::log(curvature) + curvature_slope * off;
    return level + std::exp(log_curvature) * bowl_at(u - best_log_depth(x, z)) +
           bend_at(x, u, draw);
  }

  double longest() const { return *std::max_element(tokens.begin(), tokens.end()); }

  /// One run; the same (shape, seed, length) always has the same noise within a draw.
  RunPoint run(std::int64_t layers, std::int64_t width, std::uint64_t seed, double length,
               std::uint64_t draw) const {
    const auto L = static_cast<double>(layers);
    const auto D = static_cast<double>(width);
    const double params = 12 * L * D * D;
    const double x = std::log(params);
    const double z = std::log(length / longest());
    const auto times = noise_times.find(layers);
    const double own = noise * (times == noise_times.end() ? 1 : times->second) *
                       std::exp(-noise_size_slope * (x - std::log(3e6)) - noise_length_slope * z);
    const auto shape = static_cast<std::uint64_t>(layers * 100000 + width);
    const double of_shape = RandomStream(draw, shape).normal(0);
    const RandomStream trajectory(draw, (seed + 1) * 1000000007ull + shape);
    const double common = trajectory.normal(0);
    const double rest =
        trajectory.normal(1 + static_cast<std::uint64_t>(std::llround(length / 1e5)));
    const double off = shape_noise * of_shape + own * (std::sqrt(trajectory_share) * common +
                                                       std::sqrt(1 - trajectory_share) * rest);
    return {"planted", layers, width,
            params,    length, std::exp(log_loss(x, std::log(L), z, draw) + off),
            seed};
  }

  std::vector<RunPoint> draw(std::uint64_t draw) const {
    std::vector<RunPoint> points;
    for (const PlannedShape& shape : shapes) {
      for (int seed = 1; seed <= shape.seeds; ++seed) {
        for (const double length : tokens) {
          points.push_back(
              run(shape.layers, shape.width, static_cast<std::uint64_t>(seed), length, draw));
        }
      }
    }
    return points;
  }

  /// The depth of least loss at a size, after the longest training.
  double true_best_log_depth(double x, std::uint64_t draw) const {
    const double centre = best_log_depth(x);
    double best = centre;
    double least = 1e300;
    for (int i = -400; i <= 400; ++i) {
      const double u = centre + 0.005 * i;
      const double value = log_loss(x, u, 0, draw);
      if (value < least) least = value, best = u;
    }
    return best;
  }

  /// The ln N up to which the shallower wins; -+1e300 when it never or always does in the range.
  double true_crossing(std::int64_t shallow, std::int64_t deep, double low, double high,
                       std::uint64_t draw) const {
    const auto gain = [&](double x) {
      return log_loss(x, std::log(static_cast<double>(shallow)), 0, draw) -
             log_loss(x, std::log(static_cast<double>(deep)), 0, draw);
    };
    constexpr int kSteps = 400;
    const auto place = [&](int i) { return low + (high - low) * i / kSteps; };
    int last = kSteps;
    while (last >= 0 && gain(place(last)) >= 0) --last;
    if (last < 0 || last == kSteps) return last < 0 ? -1e300 : 1e300;
    const double left = gain(place(last));
    const double right = gain(place(last + 1));
    return place(last) + (high - low) / kSteps * left / (left - right);
  }
};

/// Depths at sizes of a ladder, widths in multiples of 16; seeds by size.
inline std::vector<PlannedShape> planted_ladder(const std::vector<std::int64_t>& depths,
                                                const std::vector<double>& sizes,
                                                const std::function<int(double)>& seeds,
                                                double least_width = 64) {
  std::vector<PlannedShape> shapes;
  for (const double size : sizes) {
    for (const std::int64_t layers : depths) {
      const double width =
          16 * std::round(std::sqrt(size / (12 * static_cast<double>(layers))) / 16);
      if (width < least_width) continue;
      shapes.push_back({layers, std::llround(width), seeds(size)});
    }
  }
  return shapes;
}

/// A study of an H200's half hour: eight depths, 0.4 to 19 M, 57 shapes at most, 60 to 120 runs.
inline std::vector<PlannedShape> gpu_study() {
  return planted_ladder({2, 3, 4, 6, 8, 12, 16, 24},
                        {0.4e6, 0.75e6, 1.4e6, 2.6e6, 4.8e6, 9e6, 18e6},
                        [](double size) { return size < 3e6 ? 2 : 1; });
}

/// What may differ from world to world; a world's own law, bowl and noise are drawn anew each time.
struct PlantedFamily {
  LawForm law = LawForm::exponential;
  bool wild = false;      // one depth with five times the noise
  double bend_least = 0;  // rms of the unknown part, drawn between the two
  double bend_most = 0;
  bool strange_bowl = false;  // quartic
  double noise_size_slope = 0;
  bool lengths = false;  // two, 100 M and 200 M; the law moves and the noise falls with length
  double drift = 0;      // the law's slope changes with length by up to this
  std::vector<PlannedShape> shapes = gpu_study();
};

inline PlantedWorld draw_world(const PlantedFamily& family, std::uint64_t draw) {
  const RandomStream random(draw, 99);
  std::uint64_t next = 0;
  const auto between = [&](double low, double high) {
    return low + (high - low) * random.uniform(next++);
  };
  const auto log_between = [&](double low, double high) {
    return low * std::pow(high / low, random.uniform(next++));
  };
  PlantedWorld world;
  world.law = family.law;
  world.a = between(4.5, 5.05);
  world.b = log_between(0.05, 0.2);
  world.depth_at_3m = log_between(3, 7);
  world.slope = between(0.25, 0.6);
  world.curvature = log_between(0.015, 0.035);
  world.curvature_slope = between(-0.3, 0.1);
  world.bowl =
      random.uniform(next++) < 0.5 ? PlantedWorld::Bowl::linex : PlantedWorld::Bowl::two_powers;
  if (family.strange_bowl) world.bowl = PlantedWorld::Bowl::quartic;
  world.asymmetry = between(-0.9, 0.3);
  world.two_powers_deep = between(0.1, 0.5);
  world.two_powers_shallow = between(0.3, 1.2);
  world.knee = between(0, 0.02);
  world.noise = log_between(0.0015, 0.003);
  world.shape_noise = world.noise * between(0, 0.5);
  world.noise_size_slope = family.noise_size_slope;
  world.shapes = family.shapes;
  if (family.bend_most > 0) world.bend = log_between(family.bend_least, family.bend_most);
  if (family.wild) {
    const std::int64_t depths[]{2, 3, 4, 6, 8, 12, 16, 24};
    world.noise_times[depths[random.below(next++, 8)]] = 5;
  }
  if (family.lengths) {
    world.tokens = {1e8, 2e8};
    world.move = between(-0.6, 0.6);
    world.trajectory_share = between(0.3, 0.8);
    world.noise_length_slope = between(0, 1);
    world.noise_size_slope = between(0, 0.3);
    world.length_gain_slope = between(0, 0.01);
    world.length_gain_bend = between(-0.001, 0.001);
    world.drift = between(-family.drift, family.drift);
  }
  return world;
}

}  // namespace fathom::fits
