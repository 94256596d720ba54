#include "theory/head_rank.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "theory/structural_rank.h"

namespace fathom::theory {
namespace {

/// Monomials of a degree in some variables: binom(variables + degree - 1, degree).
mpz_class monomials(std::int64_t variables, std::int64_t degree) {
  if (degree < 0) return 0;
  if (variables == 0) return degree == 0 ? 1 : 0;
  mpz_class value;
  mpz_bin_uiui(value.get_mpz_t(), static_cast<unsigned long>(variables + degree - 1),
               static_cast<unsigned long>(degree));
  return value;
}

}  // namespace

std::vector<mpz_class> head_degree_bounds(std::int64_t layers, std::int64_t width,
                                          std::int64_t heads, std::int64_t input_dimension) {
  if (layers < 1 || layers > 8 || width < 1 || heads < 1 || width % heads != 0 ||
      input_dimension < 1) {
    throw ConfigError(fmt::format(
        "the head bound needs 1 to 8 layers and heads that divide the width, not {}, {} and {}",
        layers, heads, width));
  }
  const std::int64_t degree = gram_degree(layers);
  const std::int64_t free_factors = layers == 1 ? 1 : gram_degree(layers - 1);
  const std::int64_t dimension = input_dimension * (input_dimension + 1) / 2;
  // A single layer reads S directly, not through T.
  const std::int64_t seen = layers == 1 ? dimension : std::min(dimension, width * (width / heads));
  const std::int64_t hidden = dimension - seen;
  std::vector<mpz_class> bounds;
  for (std::int64_t k = 0; k <= degree; ++k) {
    mpz_class columns = 0;  // sum over b <= F - i, all of them at first
    for (std::int64_t b = 0; b <= free_factors; ++b) {
      columns += monomials(hidden, b) * monomials(seen, k - b);
    }
    mpz_class rows = 0;
    mpz_class smallest = columns;
    for (std::int64_t i = 1; i <= free_factors + 1; ++i) {
      const std::int64_t a = i - 1;
      const std::int64_t b = free_factors - a;
      rows += input_dimension * monomials(hidden, a) * monomials(seen, degree - k - a);
      columns -= monomials(hidden, b) * monomials(seen, k - b);
      smallest = std::min(smallest, mpz_class(rows + columns));
    }
    bounds.push_back(smallest);
  }
  return bounds;
}

mpz_class head_rank_bound(std::int64_t layers, std::int64_t width, std::int64_t heads) {
  mpz_class sum = 0;
  for (const mpz_class& bound : head_degree_bounds(layers, width, heads, width)) sum += bound;
  return sum;
}

}  // namespace fathom::theory
