// Dimension of one degree of a homogeneous ideal over a prime field, by Macaulay's matrix: all
// products of the generators with monomials, as rows over the monomials of that degree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "exact/prime_field.h"
#include "lab/frame/field_matrix.h"

namespace fathom::lab {

using Exponents = std::vector<std::uint16_t>;

/// Homogeneous; terms by exponents.
struct Polynomial {
  std::size_t degree = 0;
  std::map<Exponents, exact::PrimeField::Element> terms;
};

/// All exponents of `variables` variables with this sum, in one fixed order.
std::vector<Exponents> monomials(std::size_t variables, std::size_t degree);

/// Forms of this degree that the ideal does not contain: number of monomials minus the rank.
std::size_t ideal_codimension(const std::vector<Polynomial>& generators, std::size_t variables,
                              std::size_t degree, const exact::PrimeField& field);

/// b^T matrix b as a polynomial in the coordinates of b.
Polynomial quadratic_form(const FieldMatrix& matrix, const exact::PrimeField& field);
/// The linear form with these coefficients.
Polynomial linear_form(const FieldVector& coefficients);

/// The matrix of b -> (B c)^T matrix (B c) for a basis B of the zeros of a linear form whose last
/// coefficient is not 0: the quadratic form on that plane, in one variable fewer.
FieldMatrix restricted_form(const FieldMatrix& matrix, const FieldVector& linear,
                            const exact::PrimeField& field);

}  // namespace fathom::lab
