#include "lab/trained/loss_grid.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/counts.h"
#include "core/error.h"
#include "fits/decompositions.h"
#include "lab/frame/statistics.h"

namespace fathom::lab {
namespace {

/// Sum of squares left by y = a + b min(x - bend, 0) + c max(x - bend, 0).
double squares_left(const LossCurve& curve, double bend) {
  Eigen::MatrixXd pieces(std::ssize(curve), 3);
  Eigen::VectorXd losses(std::ssize(curve));
  for (Eigen::Index i = 0; i < losses.size(); ++i) {
    const CurveDot& dot = curve[as_size(i)];
    pieces.row(i) << 1, std::min(dot.x - bend, 0.0), std::max(dot.x - bend, 0.0);
    losses[i] = dot.loss;
  }
  return (losses - pieces * fits::least_squares(pieces, losses)).squaredNorm();
}

}  // namespace

double loss_at(const LossCurve& curve, double x) {
  for (std::size_t i = 1; i < curve.size(); ++i) {
    if (x > curve[i].x) continue;
    const double share = (x - curve[i - 1].x) / (curve[i].x - curve[i - 1].x);
    return curve[i - 1].loss + share * (curve[i].loss - curve[i - 1].loss);
  }
  return curve.back().loss;
}

double bend_of(const LossCurve& curve) {
  if (curve.size() < 4) throw InternalError("bend_of: too few dots");
  constexpr double kStep = 0.05;
  double best = NAN;
  double least = INFINITY;
  const double last = curve[curve.size() - 2].x;
  for (double bend = curve[1].x; bend <= last + kStep / 2; bend += kStep) {
    const double left = squares_left(curve, bend);
    if (left < least) {
      least = left;
      best = bend;
    }
  }
  return best;
}

Crossing crossing_of(const LossCurve& first, const LossCurve& second) {
  constexpr int kPieces = 1000;
  const double low = std::max(first.front().x, second.front().x);
  const double high = std::min(first.back().x, second.back().x);
  for (int piece = kPieces; piece >= 0; --piece) {
    const double x = low + (high - low) * piece / kPieces;
    if (loss_at(second, x) < loss_at(first, x)) continue;
    return {piece == kPieces ? CrossingPlace::beyond : CrossingPlace::inside, x};
  }
  return {CrossingPlace::before, low};
}

LossGrid::LossGrid(const std::vector<TrainedRun>& runs, const Axis& row, const Axis& column,
                   const char* key) {
  std::set<std::int64_t> rows;
  std::set<std::int64_t> columns;
  for (const TrainedRun& run : runs) {
    cells_[{row(run), column(run)}].push_back(run.diverged() ? NAN : run.number(key));
    rows.insert(row(run));
    columns.insert(column(run));
  }
  rows_.assign(rows.begin(), rows.end());
  columns_.assign(columns.begin(), columns.end());
  std::size_t least = cells_.empty() ? 0 : cells_.begin()->second.size();
  for (const auto& [place, losses] : cells_) least = std::min(least, losses.size());
  seeds_.resize(least);
  std::iota(seeds_.begin(), seeds_.end(), std::size_t{0});
}

double LossGrid::mean(std::int64_t row, std::int64_t column,
                      std::span<const std::size_t> seeds) const {
  const std::vector<double>& losses = cells_.at({row, column});
  double sum = 0;
  for (const std::size_t seed : seeds) sum += losses.at(seed);
  return sum / as_double(seeds.size());
}

LossCurve LossGrid::curve(std::int64_t row, std::span<const std::size_t> seeds) const {
  LossCurve curve;
  for (const std::int64_t column : columns_) {
    curve.push_back({as_double(column), mean(row, column, seeds)});
  }
  return curve;
}

ChartDot LossGrid::dot(std::int64_t row, std::int64_t column) const {
  const std::vector<double>& losses = cells_.at({row, column});
  const auto [low, high] = std::minmax_element(losses.begin(), losses.end());
  const double mean = std::accumulate(losses.begin(), losses.end(), 0.0) / as_double(losses.size());
  return {as_double(column), mean, *low, *high};
}

Measure LossGrid::measure(
    const std::string& criterion,
    const std::function<double(std::span<const std::size_t>)>& statistic) const {
  const double value = statistic(seeds_);
  if (!std::isfinite(value)) return {criterion, {}};
  if (seeds_.size() < 2) return {criterion, value};
  return {criterion, value, bootstrap_interval(seeds_.size(), statistic)};
}

}  // namespace fathom::lab
