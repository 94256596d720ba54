#include "theory/three_layer_defect.h"

namespace fathom::theory {
namespace {

/// Forms of a degree in some variables.
mpz_class forms(std::int64_t variables, std::int64_t degree) {
  mpz_class value;
  mpz_bin_uiui(value.get_mpz_t(), static_cast<unsigned long>(variables + degree - 1),
               static_cast<unsigned long>(degree));
  return value;
}

}  // namespace

mpz_class three_layer_defect(std::int64_t input_dimension) {
  if (input_dimension < 4) return 0;
  const std::int64_t variables = input_dimension - 1;  // the linear form removes one
  constexpr std::int64_t kDegree = 2 * static_cast<std::int64_t>(kDefectDegree);
  return forms(variables, kDegree) - 2 * forms(variables, kDegree - 2) +
         forms(variables, kDegree - 4);
}

}  // namespace fathom::theory
