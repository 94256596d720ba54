// Grids of values of bidirectional attention through its Gram form (docs/theory.md).
//
// With S = sum_j x^j x^jT and T_l(S) = sum_h W^O_h W^V_h S (W^K_h)^T W^Q_h, one layer maps
//   x <- T(S) x,  S <- T(S) S T(S)^T          (T + 1 in place of T with a residual)
// so the output depends on a row only through (S_A, x^i) and on a column only through S_B:
//   y = sum_h q_h^T S v_h,  q_h = T^T a_h,  v_h = T^T B_h T x,   a_h = row p of W^O_h W^V_h,
//   B_h = (W^K_h)^T W^Q_h, with S, T, x taken before the last but one layer's step.
// T_1 is linear, so T_1(S_A + s^2 S_B) is a sum of two precomputed matrices.
// Memory: per row 2 d^2 + (H + 2) d doubles; per loaded node (2 d^2 + H d) lanes.
#pragma once

#include <memory>

#include "exact/assignments.h"
#include "exact/attention_network.h"
#include "exact/degree_grid.h"

namespace fathom::exact {

/// Largest width for which all sums of the kernel stay exact.
inline constexpr std::size_t kMaxGramWidth = 64;

/// `output_row`: which position of the row assignments is the output position.
std::unique_ptr<GridFunction> gram_grid(const AttentionShape& shape,
                                        const AttentionWeights<PrimeField::Element>& weights,
                                        std::size_t output_row, const Assignments& rows,
                                        const Assignments& columns, std::size_t nodes,
                                        const PrimeField& field);

/// Multiply-adds and reductions of one entry at one node, counted from the formulas.
struct OperationCount {
  double multiply_adds = 0;
  double reductions = 0;
};
OperationCount gram_operations(const AttentionShape& shape);

}  // namespace fathom::exact
