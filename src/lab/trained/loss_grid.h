// Losses of a grid of runs, rows by columns by seeds, and what curves through them say.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lab/frame/experiment.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {

struct CurveDot {
  double x = 0, loss = 0;
};
using LossCurve = std::vector<CurveDot>;  // x increases

/// Linear between the dots; x must lie between the first and the last.
double loss_at(const LossCurve& curve, double x);

/// Where two straight pieces that meet fit the curve best (least squares), to 0.05 of x. The curve
/// has four dots or more and the bend lies between the second and the last but one.
double bend_of(const LossCurve& curve);

/// The x from which `second` stays below `first` up to the end of the x that both have.
enum class CrossingPlace : std::uint8_t { before, inside, beyond };  // of that range
struct Crossing {
  CrossingPlace place = CrossingPlace::inside;
  double x = 0;  // an end of the range where it lies outside
};
Crossing crossing_of(const LossCurve& first, const LossCurve& second);

class LossGrid {
 public:
  using Axis = std::function<std::int64_t(const TrainedRun&)>;
  /// Runs of one cell are its seeds, in order. A run that diverged counts as NaN.
  LossGrid(const std::vector<TrainedRun>& runs, const Axis& row, const Axis& column,
           const char* key = "loss");

  const std::vector<std::int64_t>& rows() const { return rows_; }
  const std::vector<std::int64_t>& columns() const { return columns_; }
  std::span<const std::size_t> seeds() const { return seeds_; }  // those of every cell

  bool has(std::int64_t row, std::int64_t column) const { return cells_.contains({row, column}); }
  double mean(std::int64_t row, std::int64_t column, std::span<const std::size_t> seeds) const;
  /// Loss by column.
  LossCurve curve(std::int64_t row, std::span<const std::size_t> seeds) const;
  /// The mean of all seeds of the cell, with the smallest and the largest around it.
  ChartDot dot(std::int64_t row, std::int64_t column) const;
  /// A statistic of all seeds with its bootstrap interval; no value where it is NaN.
  Measure measure(const std::string& criterion,
                  const std::function<double(std::span<const std::size_t>)>& statistic) const;

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<double>> cells_;
  std::vector<std::int64_t> rows_, columns_;
  std::vector<std::size_t> seeds_;
};

}  // namespace fathom::lab
