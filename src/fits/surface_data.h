// Runs as the surface sees them: repeats folded into means and scatters.
//
// A trajectory is one seed of one shape at one or more training lengths. Trajectories of a shape
// with the same lengths are repeats: their mean at each length and the scatter about it are all
// that a normal likelihood needs, so the work grows with the number of shapes, not of runs.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <vector>

#include "core/interval.h"
#include "fits/depth_surface.h"
#include "fits/run_point.h"

namespace fathom::fits {

/// The training length that z counts from: that of the longest runs, ln T = offset + slope ln N.
struct LengthRule {
  double offset = 0;
  double slope = 0;
  bool differs = false;  // there is more than one length
  double of(double log_size, double tokens) const;
};

struct SurfaceRow {
  SurfacePlace place;
  double mean = 0;  // ln loss, over the repeats
};

/// Trajectories of one shape with the same lengths: `lengths` rows from `first`.
struct RepeatUnit {
  Eigen::Index first = 0;
  Eigen::Index lengths = 0;
  double repeats = 0;
  Eigen::MatrixXd scatter;  // sum over the repeats of (y - mean)(y - mean)', length by length
};

/// Units of one shape, rows [first, first + rows).
struct ShapeBlock {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::size_t depth = 0;  // place in SurfaceData::depths
  Eigen::Index first = 0;
  Eigen::Index rows = 0;
  std::vector<RepeatUnit> units;
};

struct SurfaceData {
  std::vector<std::int64_t> depths;
  std::vector<SurfaceRow> rows;
  std::vector<ShapeBlock> shapes;
  std::vector<std::vector<std::size_t>> rungs;  // rows of about one size, for leaving one out
  LengthRule length_rule;
  Interval log_size;   // ln N of all rows
  Interval log_depth;  // ln L
  Interval length;     // z
  std::size_t runs = 0;
  double block_coefficient = 12;  // N = c L D^2, median

  double centre() const { return (log_size.low + log_size.high) / 2; }
};

/// The points in any order; the caller guarantees finite positive numbers.
SurfaceData fold_runs(std::span<const RunPoint> points);

}  // namespace fathom::fits
