// Small matrices over a prime field.
#pragma once

#include <cstddef>
#include <vector>

#include "exact/prime_field.h"

namespace fathom::lab {

using FieldVector = std::vector<exact::PrimeField::Element>;
using FieldMatrix = std::vector<FieldVector>;

inline FieldMatrix transposed(const FieldMatrix& a) {
  FieldMatrix result(a.front().size(), FieldVector(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) result[j][i] = a[i][j];
  }
  return result;
}

inline FieldMatrix field_product(const FieldMatrix& a, const FieldMatrix& b,
                                 const exact::PrimeField& field) {
  FieldMatrix result(a.size(), FieldVector(b.front().size(), 0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < b.size(); ++k) {
      for (std::size_t j = 0; j < b[k].size(); ++j) {
        result[i][j] = field.add(result[i][j], field.multiply(a[i][k], b[k][j]));
      }
    }
  }
  return result;
}

}  // namespace fathom::lab
