// Logarithms in base 3, the base of arXiv 2006.12467: each layer triples the degree.
#pragma once

#include <cmath>

namespace fathom::theory {

inline const double kLn3 = std::log(3.0);

inline double log3(double x) {
  return std::log(x) / kLn3;
}

}  // namespace fathom::theory
