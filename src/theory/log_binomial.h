// ln of a binomial coefficient for real arguments of any size, without cancellation.
#pragma once

namespace fathom::theory {

/// ln binom(m + k, k) for m, k >= 0. Relative error about 1e-14, even for m = 1e200.
///
/// With Stirling's ln x! = x ln x - x + ln(2 pi x)/2 + s(x), the large terms combine to
/// k log1p(m/k) + m log1p(k/m), a sum of positive numbers.
double log_binomial(double m, double k);

}  // namespace fathom::theory
