// Why three layers with one head miss R_max (docs/theory.md, section 8).
//
// With one B vector b the part of degree 7 in S_B lies in an ideal of one linear form and two
// quadrics in the d coordinates of b. In degree 14 such an ideal misses at least as many forms as
// a complete intersection does: the coefficient of z^14 in (1 - z^2)^2 / (1 - z)^(d-1). Restricting
// to one vector is onto, so as many polynomials are missing with more B positions.
#pragma once

#include <gmpxx.h>

#include <cstdint>

namespace fathom::theory {

/// The degree in S_B to which the defect applies.
inline constexpr std::size_t kDefectDegree = 7;

/// Polynomials of degree 7 in S_B that no network of three layers and one head reaches, for inputs
/// of this dimension; 0 up to dimension 3.
mpz_class three_layer_defect(std::int64_t input_dimension);

}  // namespace fathom::theory
