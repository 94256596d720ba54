#include "exact/degree_grid.h"

#include <algorithm>

#include "core/counts.h"

namespace fathom::exact {
namespace {

constexpr std::size_t kRowTile = 16;

/// Balanced interpolation coefficients, [k][j].
std::vector<std::vector<double>> node_weights(const PrimeField& field, std::size_t nodes) {
  std::vector<PrimeField::Element> squares;
  for (std::size_t j = 0; j < nodes; ++j) {
    squares.push_back(field.multiply(grid_node(j), grid_node(j)));
  }
  std::vector<std::vector<double>> weights;
  for (const auto& row : interpolation_rows(field, squares)) {
    weights.push_back(balanced_values(row, field));
  }
  return weights;
}

/// One row of one block at eight columns: sum_j weights[j] values[j * stride], canonical.
__attribute__((target_clones("avx512f", "fma", "default"))) void interpolate(
    const LaneField& field, const double* weights, std::size_t nodes, const Lanes* values,
    std::size_t stride, Lanes* result) {
  Lanes sum{};
  for (std::size_t j = 0; j < nodes; ++j) {
    sum += weights[j] * values[j * stride];
    if (j % kLateSums == kLateSums - 1) sum = field.reduce(sum);
  }
  *result = field.canonical(field.reduce(sum));
}

}  // namespace

std::vector<std::vector<double>> degree_matrices(GridFunction& function, const PrimeField& field,
                                                 const std::vector<std::size_t>& sides,
                                                 const ProgressCallback& progress) {
  const LaneField lanes(field);
  const std::size_t nodes = sides.size();
  const std::vector<std::vector<double>> weights = node_weights(field, nodes);
  const std::size_t largest = *std::max_element(sides.begin(), sides.end());
  std::vector<std::vector<double>> matrices;
  for (const std::size_t side : sides) matrices.emplace_back(side * side);

  LaneVector values(nodes * kRowTile);
  for (std::size_t column = 0; column < largest; column += kLanes) {
    function.load_columns(column);
    for (std::size_t row = 0; row < largest; row += kRowTile) {
      const std::size_t rows = std::min(kRowTile, largest - row);
      for (std::size_t j = 0; j < nodes; ++j) {
        function.evaluate(j, row, rows, &values[j * kRowTile]);
      }
      for (std::size_t k = 0; k < sides.size(); ++k) {
        if (sides[k] <= column) continue;
        const std::size_t width = std::min(kLanes, sides[k] - column);
        for (std::size_t i = 0; i < rows && row + i < sides[k]; ++i) {
          Lanes entry;
          interpolate(lanes, weights[k].data(), nodes, &values[i], kRowTile, &entry);
          double* target = &matrices[k][(row + i) * sides[k] + column];
          for (std::size_t c = 0; c < width; ++c) target[c] = entry[c];
        }
      }
    }
    if (progress) {
      progress(std::min(1.0, as_double(column + kLanes) / as_double(largest)));
    }
  }
  return matrices;
}

}  // namespace fathom::exact
