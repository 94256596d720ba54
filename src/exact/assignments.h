// Random assignments to the positions of one side of a partition.
#pragma once

#include <cstddef>
#include <vector>

#include "exact/prime_field.h"

namespace fathom::exact {

/// `count` assignments of vectors of dimension `width` to `positions` positions:
/// value(n, j, a) = values[(n * positions + j) * width + a].
struct Assignments {
  std::size_t count = 0;
  std::size_t positions = 0;
  std::size_t width = 0;
  std::vector<PrimeField::Element> values;

  const PrimeField::Element* at(std::size_t assignment, std::size_t position) const {
    return &values[(assignment * positions + position) * width];
  }
};

/// Uniform inputs; with an embedding (width x rank, row by row; empty for none) x = E w, w uniform.
Assignments random_assignments(std::size_t count, std::size_t positions, std::size_t width,
                               const std::vector<PrimeField::Element>& embedding, std::size_t rank,
                               const PrimeField& field, FieldSampler& sampler);

}  // namespace fathom::exact
