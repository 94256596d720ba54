// Prime fields for exact linear algebra in doubles: p just below 2^23, so that the balanced
// representatives, |x| <= (p-1)/2 < 2^22, have products below 2^44 and a double (53 bits) holds a
// sum of 512 of them exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/counts.h"
#include "core/random.h"

namespace fathom::exact {

/// Largest value the primes stay below.
inline constexpr std::uint32_t kPrimeLimit = 1u << 23;

/// Miller-Rabin with the bases 2, 3, 5, 7, which is a proof for every n below 3.2e9.
bool is_prime(std::uint32_t n);
/// The `count` largest odd primes below `limit`, in falling order.
std::vector<std::uint32_t> primes_below(std::uint32_t limit, std::size_t count);

/// Scalars modulo p as signed 64-bit numbers in [0, p): the plain arithmetic that fast code is
/// checked against. It is a Ring in the sense of the network templates: Element, zero, add,
/// multiply.
class PrimeField {
 public:
  using Element = std::int64_t;

  explicit PrimeField(std::uint32_t prime) : prime_(prime) {}
  std::uint32_t prime() const { return static_cast<std::uint32_t>(prime_); }

  Element zero() const { return 0; }
  Element constant(std::int64_t value) const { return ((value % prime_) + prime_) % prime_; }
  Element add(Element a, Element b) const { return (a + b) % prime_; }
  Element multiply(Element a, Element b) const { return (a * b) % prime_; }
  /// sum_i a[i * stride] b[i]
  Element dot(const Element* a, std::size_t stride, const Element* b, std::size_t size) const {
    Element sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum = add(sum, multiply(a[i * stride], b[i]));
    return sum;
  }
  Element power(Element base, std::uint64_t exponent) const;
  /// InternalError for zero.
  Element inverse(Element a) const;
  /// The representative in [-(p-1)/2, (p-1)/2].
  double balanced(Element a) const { return as_double(a > prime_ / 2 ? a - prime_ : a); }

 private:
  std::int64_t prime_;
};

std::vector<double> balanced_values(const std::vector<PrimeField::Element>& values,
                                    const PrimeField& field);

/// Uniform field elements in order of drawing; a pure function of (seed, stream, prime).
class FieldSampler {
 public:
  FieldSampler(std::uint64_t seed, std::uint64_t stream, const PrimeField& field)
      : random_(seed, stream), prime_(field.prime()) {}

  PrimeField::Element next() {
    return static_cast<PrimeField::Element>(random_.below(index_++, prime_));
  }
  std::vector<PrimeField::Element> vector(std::size_t size);

 private:
  RandomStream random_;
  std::uint64_t prime_;
  std::uint64_t index_ = 0;
};

/// Coefficients that turn the values at distinct nodes t_0..t_C into the coefficient of t^k:
/// rows k = 0..C of the inverse Vandermonde matrix. O(C^2).
std::vector<std::vector<PrimeField::Element>> interpolation_rows(
    const PrimeField& field, const std::vector<PrimeField::Element>& nodes);

}  // namespace fathom::exact
