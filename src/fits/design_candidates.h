// Shapes a design may ask for: for each size of a ladder and each depth, the width that comes
// nearest, N = 12 L D^2, D a multiple of the head size. Each rung's size is moved within its
// stretch to where the depths match best.
#pragma once

#include <cstdint>
#include <vector>

namespace fathom::fits {

struct CandidateShape {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  double params = 0;  // 12 L D^2
};

struct CandidateLimits {
  std::vector<std::int64_t> depths;
  double smallest = 0;  // params
  double largest = 0;
  std::int64_t head_size = 16;
  std::int64_t least_width = 64;
  double rung_ratio = 1.5;  // between neighbouring sizes
  double tolerance = 0.15;  // of ln N, from the rung's size
};

/// Ascending by size, then depth; empty when no shape fits.
std::vector<CandidateShape> candidate_shapes(const CandidateLimits& limits);

}  // namespace fathom::fits
