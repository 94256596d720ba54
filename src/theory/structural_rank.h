// R_max: an upper bound on the separation rank of the network of eq. (3), arXiv 2006.12467, that
// follows from its algebraic structure alone (docs/theory.md derives it).
//
// With S_A and S_B the Gram matrices of the two sides, the output is linear in x^i and homogeneous
// of degree C = (3^L - 1)/2 in S_A + S_B. The part of degree k in S_B factors through the space of
// degree-k polynomials in S_B on one side and of degree C-k polynomials in S_A times x^i on the
// other, so its rank is at most the smaller dimension:
//
//   R_max = sum_{k=0}^{C} min( B(k), A(C-k) ).
//
// A Gram matrix of r vectors in d dimensions has rank at most m = min(r, d), hence
//   B(k) = sum of dim S_{2 lambda}(C^d), lambda a partition of k with at most m rows,
//   A(j) = sum of dim S_mu(C^d), mu a partition of 2j+1 with exactly one odd part, at most m rows,
// S_mu the irreducible representation of GL_d. For r >= d: B(k) = binom(k+D-1, D-1) with
// D = d(d+1)/2, and A(j) = d B(j).
#pragma once

#include <gmpxx.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace fathom::theory {

struct GramSetting {
  std::int64_t layers = 1;
  std::int64_t width = 1;
  std::int64_t positions_a = 1;  // the side that holds the output position
  std::int64_t positions_b = 1;
};

/// C = (3^L - 1)/2, the degree in the Gram matrix, exactly; ConfigError above 39 layers.
std::int64_t gram_degree(std::int64_t layers);
/// The same as a real number, for any real depth.
double real_gram_degree(double layers);

/// Dimensions of the two sides for every degree k in S_B, k = 0..C.
struct DegreeBlock {
  mpz_class side_a;  // A(C - k)
  mpz_class side_b;  // B(k)
  mpz_class bound() const { return side_a < side_b ? side_a : side_b; }
};
/// Cost grows with the number of partitions of C into min(r, d) rows; ConfigError past 50 million.
std::vector<DegreeBlock> degree_blocks(const GramSetting& setting);

/// R_max by summing the blocks.
mpz_class structural_rank(const GramSetting& setting);

/// R_max with enough positions on both sides (r >= d), in closed form: with k* the largest k that
/// has B(k) <= A(C-k), the hockey-stick identity gives
///   R_max = binom(k* + D, D) + d binom(C - k* - 1 + D, D).
struct SaturatedRank {
  double log3 = 0;
  std::optional<mpz_class> exact;  // present up to about 60 digits
};
SaturatedRank saturated_structural_rank(std::int64_t layers, std::int64_t width);

}  // namespace fathom::theory
