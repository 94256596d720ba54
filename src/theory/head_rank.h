// A structural upper bound that takes the heads into account (docs/theory.md derives it).
//
// The Gram matrix S reaches the first layer's map T(S) = sum_h W^O_h (W^V_h S W^K_h^T) W^Q_h only
// through H matrices of size d/H, that is through t = min(D, d^2/H) linear forms, D = d(d+1)/2.
// The other m = D - t directions of S enter only where a layer multiplies by S itself:
// F = (3^(L-1) - 1)/2 of the C = (3^L - 1)/2 factors. So the degree-k block joins A-monomials with
// a factors and B-monomials with b factors from those m directions only where a + b <= F, and such
// a staircase has rank at most
//
//   min_{i=0..F+1}  sum_{a<i} A_a + sum_{b<=F-i} B_b,
//   B_b = binom(m+b-1, b) binom(t+k-b-1, k-b),  A_a = d binom(m+a-1, a) binom(t+C-k-a-1, C-k-a).
//
// With one head m = 0 and the bound is R_max. Inputs of dimension r < d (an embedding) put r in
// place of d in D and A_a. Fewer than d positions per side only lower the rank.
#pragma once

#include <gmpxx.h>

#include <cstdint>
#include <vector>

namespace fathom::theory {

/// One bound per degree k = 0..C; ConfigError unless heads divide the width and L <= 8.
std::vector<mpz_class> head_degree_bounds(std::int64_t layers, std::int64_t width,
                                          std::int64_t heads, std::int64_t input_dimension);
/// Their sum, for free inputs.
mpz_class head_rank_bound(std::int64_t layers, std::int64_t width, std::int64_t heads);

}  // namespace fathom::theory
