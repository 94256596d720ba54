// The coordinate check of a parametrisation (arXiv 2203.03466, 2505.01618): sizes of activations
// after a few steps, against width and depth. Under a parametrisation that transfers they do not
// move with either; where they grow or shrink, the best learning rate will shift too.
#pragma once

#include <vector>

#include "train/run_spec.h"

namespace fathom::train {

struct CoordinateRow {
  std::int64_t layers = 0, width = 0;
  std::vector<double> stream_rms;    // of the last stream: before training and after each step
  std::vector<double> stream_moved;  // rms of its change since before training, after each step
};

struct CoordinateRequest {
  std::vector<std::int64_t> widths, layers;  // each alone is varied, the other stays the spec's
  std::int64_t steps = 10;
};

/// How the last stream's size after all steps, and how far it moved, grow: 0 is flat.
struct CoordinateExponents {
  double size_width = 0, size_depth = 0;
  double moved_width = 0, moved_depth = 0;
};

struct CoordinateCheck {
  std::vector<CoordinateRow> by_width, by_depth;
  CoordinateExponents exponents;
};

/// Head size and everything else is kept from the spec; tokens are a chain to predict, the same for
/// all; the learning rate is the spec's peak, without warm-up. ConfigError without a vocabulary:
/// the check reads no tokens that could determine it.
CoordinateCheck coordinate_check(const RunSpec& spec, const CoordinateRequest& request);

/// Slope of log(last value) against log(size) over the rows: 0 is flat.
double growth_exponent(const std::vector<double>& sizes, const std::vector<double>& values);

}  // namespace fathom::train
