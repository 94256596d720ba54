// Grids of values straight from a network's definition, eight columns at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "exact/arithmetic_circuit.h"
#include "exact/assignments.h"
#include "exact/attention_network.h"
#include "exact/degree_grid.h"
#include "exact/sliced_attention.h"

namespace fathom::exact {

/// Which positions of the sequence the rows (A side) and the columns (B side) fill.
struct Sides {
  std::vector<std::size_t> rows;
  std::vector<std::size_t> columns;
};

/// `nodes`: how many scalings of the columns will be requested.
std::unique_ptr<GridFunction> direct_attention_grid(
    const AttentionShape& shape, const AttentionWeights<PrimeField::Element>& weights, Sides sides,
    const Assignments& rows, const Assignments& columns, std::size_t nodes,
    const PrimeField& field);
std::unique_ptr<GridFunction> sliced_attention_grid(
    const SlicedShape& shape, const AttentionWeights<PrimeField::Element>& weights, Sides sides,
    const Assignments& rows, const Assignments& columns, const PrimeField& field);
std::unique_ptr<GridFunction> conv_grid(const ConvShape& shape,
                                        const ConvWeights<PrimeField::Element>& weights,
                                        Sides sides, const Assignments& rows,
                                        const Assignments& columns, const PrimeField& field);
std::unique_ptr<GridFunction> recurrent_grid(const RecurrentShape& shape,
                                             const RecurrentWeights<PrimeField::Element>& weights,
                                             Sides sides, const Assignments& rows,
                                             const Assignments& columns, const PrimeField& field);

}  // namespace fathom::exact
