#include <cmath>

#include "core/counts.h"
#include "core/random.h"
#include "engine/ops/attention/attention.h"

namespace fathom::engine {
namespace {

/// Subtracts from row `row` of a block its components along the rows before it (Gram-Schmidt).
void make_orthogonal(std::vector<double>& rows, std::int64_t row, std::int64_t size) {
  double* own = rows.data() + row * size;
  for (std::int64_t r = 0; r < row; ++r) {
    const double* other = rows.data() + r * size;
    double along = 0, length = 0;
    for (std::int64_t c = 0; c < size; ++c) {
      along += own[c] * other[c];
      length += other[c] * other[c];
    }
    for (std::int64_t c = 0; c < size; ++c) own[c] -= along / length * other[c];
  }
}

double length_of(const double* row, std::int64_t size) {
  double square = 0;
  for (std::int64_t c = 0; c < size; ++c) square += row[c] * row[c];
  return std::sqrt(square);
}

}  // namespace

std::vector<float> feature_directions(const AttentionShape& shape) {
  const std::int64_t size = shape.head_size;
  const RandomStream random(shape.seed, 0xfea7);
  std::vector<float> directions;
  for (std::int64_t first = 0; first < shape.features; first += size) {
    std::vector<double> rows(as_size(size * size));
    std::vector<double> lengths;  // of the independent normal vectors, kept by the rows
    for (std::int64_t i = 0; i < size * size; ++i) {
      rows[as_size(i)] = random.normal(as_size(first * size + i));
    }
    for (std::int64_t r = 0; r < size; ++r) {
      lengths.push_back(length_of(rows.data() + r * size, size));
    }
    for (std::int64_t r = 0; r < size; ++r) make_orthogonal(rows, r, size);
    for (std::int64_t r = 0; r < size && first + r < shape.features; ++r) {
      const double scale = lengths[as_size(r)] / length_of(rows.data() + r * size, size);
      for (std::int64_t c = 0; c < size; ++c) {
        directions.push_back(static_cast<float>(scale * rows[as_size(r * size + c)]));
      }
    }
  }
  return directions;
}

}  // namespace fathom::engine
