#include "fits/surface_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "fits/statistics.h"

namespace fathom::fits {
namespace {

// Lengths within a hundredth of each other are one length.
constexpr double kSameLength = 0.01;
// With more shapes than this, those of one depth within a fiftieth in size are folded together: no
// smooth surface could separate them.
constexpr std::size_t kManyShapes = 500;
constexpr double kSameSize = 0.02;
// Sizes further apart than this are different rungs of a ladder; a ladder without gaps is cut
// into stretches of this length.
constexpr double kRungGap = 0.12;
constexpr double kRungLength = 0.7;

struct ShapeKey {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  auto operator<=>(const ShapeKey&) const = default;
};

struct Observation {
  double log_size = 0;
  double tokens = 0;
  double log_loss = 0;
};
/// Of one trajectory, by length.
using Trajectory = std::map<std::int64_t, Observation>;

std::int64_t length_key(double tokens) {
  return std::llround(std::log(tokens) / kSameLength);
}

std::map<ShapeKey, std::vector<Trajectory>> trajectories_by_shape(std::span<const RunPoint> points,
                                                                  bool fold_sizes) {
  // Runs without seeds share one; the second run of a shape, seed and length is another trajectory.
  std::map<std::tuple<ShapeKey, std::uint64_t, std::int64_t>, std::size_t> seen;
  std::map<ShapeKey, std::map<std::pair<std::uint64_t, std::size_t>, Trajectory>> found;
  for (const RunPoint& p : points) {
    const double x = std::log(p.params);
    const ShapeKey key{p.layers, fold_sizes ? std::llround(x / kSameSize) : p.width};
    const std::int64_t length = length_key(p.tokens);
    // Folded shapes keep their widths apart as trajectories.
    const std::uint64_t seed = fold_sizes ? 0 : p.seed;
    const std::size_t turn = seen[{key, seed, length}]++;
    found[key][{seed, turn}][length] = {x, p.tokens, std::log(p.loss)};
  }
  std::map<ShapeKey, std::vector<Trajectory>> result;
  for (auto& [key, by_seed] : found) {
    for (auto& [seed, trajectory] : by_seed) result[key].push_back(std::move(trajectory));
  }
  return result;
}

LengthRule longest_training(std::span<const RunPoint> points) {
  // A shape counts with the longest training of all shapes of about its size: one that was not
  // trained to the end would bend the line.
  std::map<double, double> longest;  // ln T by ln N
  for (const RunPoint& p : points) {
    auto [place, fresh] = longest.try_emplace(std::log(p.params), -1e300);
    place->second = std::max(place->second, std::log(p.tokens));
  }
  std::vector<std::pair<double, double>> line;
  for (const auto& [x, own] : longest) {
    double most = own;
    for (auto near = longest.lower_bound(x - kRungLength / 2);
         near != longest.end() && near->first <= x + kRungLength / 2; ++near) {
      most = std::max(most, near->second);
    }
    line.emplace_back(x, most);
  }
  const auto count = static_cast<double>(line.size());
  double x = 0;
  double t = 0;
  for (const auto& [size, length] : line) {
    x += size / count;
    t += length / count;
  }
  double xx = 0;
  double xt = 0;
  for (const auto& [size, length] : line) {
    xx += (size - x) * (size - x);
    xt += (size - x) * (length - t);
  }
  LengthRule rule;
  rule.slope = xx > 1e-6 ? xt / xx : 0;
  rule.offset = t - rule.slope * x;
  for (const RunPoint& p : points) {
    rule.differs |= std::fabs(std::log(p.tokens) - rule.offset - rule.slope * std::log(p.params)) >
                    5 * kSameLength;
  }
  return rule;
}

/// One unit from trajectories of equal lengths: appends its rows.
RepeatUnit fold_unit(const std::vector<const Trajectory*>& repeats, double log_depth,
                     SurfaceData& data) {
  RepeatUnit unit;
  unit.first = static_cast<Eigen::Index>(data.rows.size());
  unit.lengths = static_cast<Eigen::Index>(repeats.front()->size());
  unit.repeats = static_cast<double>(repeats.size());
  for (const auto& [length, first] : *repeats.front()) {
    SurfaceRow row;
    double z = 0;
    for (const Trajectory* repeat : repeats) {
      const Observation& seen = repeat->at(length);
      row.place.x += seen.log_size / unit.repeats;
      row.mean += seen.log_loss / unit.repeats;
      z += data.length_rule.of(seen.log_size, seen.tokens) / unit.repeats;
    }
    row.place.u = log_depth;
    row.place.z = z;
    data.rows.push_back(row);
  }
  unit.scatter = Eigen::MatrixXd::Zero(unit.lengths, unit.lengths);
  for (const Trajectory* repeat : repeats) {
    Eigen::VectorXd off(unit.lengths);
    Eigen::Index i = 0;
    for (const auto& [length, seen] : *repeat) {
      off[i] = seen.log_loss - data.rows[static_cast<std::size_t>(unit.first + i)].mean;
      ++i;
    }
    unit.scatter += off * off.transpose();
  }
  return unit;
}

void find_rungs(SurfaceData& data) {
  std::vector<std::size_t> order(data.rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return data.rows[i].place.x < data.rows[j].place.x;
  });
  double last = -1e300;
  double start = 0;
  for (const std::size_t i : order) {
    const double x = data.rows[i].place.x;
    if (x - last > kRungGap || x - start > kRungLength) {
      data.rungs.emplace_back();
      start = x;
    }
    data.rungs.back().push_back(i);
    last = x;
  }
}

void find_ranges(SurfaceData& data) {
  data.log_size = data.log_depth = data.length = {1e300, -1e300};
  const auto widen = [](Interval& range, double value) {
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  };
  for (const SurfaceRow& row : data.rows) {
    widen(data.log_size, row.place.x);
    widen(data.log_depth, row.place.u);
    widen(data.length, row.place.z);
  }
}

}  // namespace

double LengthRule::of(double log_size, double tokens) const {
  return differs ? std::log(tokens) - offset - slope * log_size : 0;
}

SurfaceData fold_runs(std::span<const RunPoint> points) {
  SurfaceData data;
  data.runs = points.size();
  data.length_rule = longest_training(points);
  std::vector<double> coefficients;
  for (const RunPoint& p : points) {
    const auto width = static_cast<double>(p.width);
    coefficients.push_back(p.params / (static_cast<double>(p.layers) * width * width));
  }
  data.block_coefficient = quantile(std::move(coefficients), 0.5);
  auto shapes = trajectories_by_shape(points, false);
  if (shapes.size() > kManyShapes) shapes = trajectories_by_shape(points, true);
  for (const auto& [key, trajectories] : shapes) {
    if (data.depths.empty() || data.depths.back() != key.layers) data.depths.push_back(key.layers);
    ShapeBlock block{
        key.layers, key.width, data.depths.size() - 1, static_cast<Eigen::Index>(data.rows.size()),
        0,          {}};
    std::map<std::vector<std::int64_t>, std::vector<const Trajectory*>> by_lengths;
    for (const Trajectory& trajectory : trajectories) {
      std::vector<std::int64_t> lengths;
      for (const auto& [length, seen] : trajectory) lengths.push_back(length);
      by_lengths[lengths].push_back(&trajectory);
    }
    const double log_depth = std::log(static_cast<double>(key.layers));
    for (const auto& [lengths, repeats] : by_lengths) {
      block.units.push_back(fold_unit(repeats, log_depth, data));
    }
    block.rows = static_cast<Eigen::Index>(data.rows.size()) - block.first;
    data.shapes.push_back(std::move(block));
  }
  find_ranges(data);
  find_rungs(data);
  return data;
}

}  // namespace fathom::fits
