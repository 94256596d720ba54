// Degree splitting: from values of y on a grid to one matrix per degree in the B inputs.
//
// With the B inputs scaled by s, y(A, s B) = sum_{k=0}^{C} t^k y_k(A, B), t = s^2: attention sees
// every position but its own in pairs. Values at C+1 nodes s_j = j+1 give every y_k by
// interpolation, and the rank of y is the sum of the ranks of the y_k (docs/theory.md).
//
// Cost: n^2 (C+1) evaluations, n the largest side, and n_k^2 (C+1) multiply-adds for block k.
// Memory: 8 n_k^2 bytes for each requested block.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "exact/lanes.h"
#include "exact/prime_field.h"

namespace fathom::exact {

/// y on the grid, eight columns at a time. Rows are assignments to the A side, columns to the B
/// side; rows and columns are drawn once and keep their meaning.
class GridFunction {
 public:
  virtual ~GridFunction() = default;
  virtual void load_columns(std::size_t first_column) = 0;
  /// Values (reduced) of `rows` rows at the loaded columns, their inputs scaled by the node.
  virtual void evaluate(std::size_t node, std::size_t first_row, std::size_t rows,
                        Lanes* values) const = 0;
};

/// s_j for j = 0 .. nodes-1.
inline PrimeField::Element grid_node(std::size_t j) {
  return static_cast<PrimeField::Element>(j + 1);
}

/// Called with the share of the work that is done; may throw to stop it.
using ProgressCallback = std::function<void(double)>;

/// One matrix of side sides[k] per degree k, row by row, entries balanced; sides[k] = 0 skips it.
/// A single side means no splitting: the values at s = 1 themselves.
std::vector<std::vector<double>> degree_matrices(GridFunction& function, const PrimeField& field,
                                                 const std::vector<std::size_t>& sides,
                                                 const ProgressCallback& progress = {});

}  // namespace fathom::exact
