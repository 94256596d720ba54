#include "exact/prime_field.h"

#include "core/error.h"

namespace fathom::exact {
namespace {

std::uint64_t power_mod(std::uint64_t base, std::uint64_t exponent, std::uint64_t modulus) {
  std::uint64_t result = 1;
  for (base %= modulus; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = result * base % modulus;
    base = base * base % modulus;
  }
  return result;
}

/// n - 1 = odd 2^twos; true when `base` proves n composite.
bool witness(std::uint64_t base, std::uint64_t n, std::uint64_t odd, int twos) {
  std::uint64_t x = power_mod(base, odd, n);
  if (x == 1 || x == n - 1) return false;
  for (int i = 1; i < twos; ++i) {
    x = x * x % n;
    if (x == n - 1) return false;
  }
  return true;
}

}  // namespace

bool is_prime(std::uint32_t n) {
  if (n < 2) return false;
  for (const std::uint32_t small : {2u, 3u, 5u, 7u}) {
    if (n % small == 0) return n == small;
  }
  std::uint64_t odd = n - 1;
  int twos = 0;
  for (; odd % 2 == 0; odd /= 2) ++twos;
  for (const std::uint64_t base : {2u, 3u, 5u, 7u}) {
    if (witness(base, n, odd, twos)) return false;
  }
  return true;
}

std::vector<std::uint32_t> primes_below(std::uint32_t limit, std::size_t count) {
  std::vector<std::uint32_t> primes;
  for (std::uint32_t n = limit - 1; n > 2 && primes.size() < count; --n) {
    if (is_prime(n)) primes.push_back(n);
  }
  return primes;
}

PrimeField::Element PrimeField::power(Element base, std::uint64_t exponent) const {
  return static_cast<Element>(
      power_mod(static_cast<std::uint64_t>(base), exponent, static_cast<std::uint64_t>(prime_)));
}

PrimeField::Element PrimeField::inverse(Element a) const {
  if (a % prime_ == 0) throw InternalError("zero has no inverse in a field");
  return power(a, static_cast<std::uint64_t>(prime_ - 2));
}

std::vector<double> balanced_values(const std::vector<PrimeField::Element>& values,
                                    const PrimeField& field) {
  std::vector<double> balanced;
  balanced.reserve(values.size());
  for (const auto value : values) balanced.push_back(field.balanced(value));
  return balanced;
}

std::vector<PrimeField::Element> FieldSampler::vector(std::size_t size) {
  std::vector<PrimeField::Element> values(size);
  for (auto& value : values) value = next();
  return values;
}

std::vector<std::vector<PrimeField::Element>> interpolation_rows(
    const PrimeField& field, const std::vector<PrimeField::Element>& nodes) {
  const std::size_t n = nodes.size();
  // master(t) = prod_j (t - t_j), lowest coefficient first
  std::vector<PrimeField::Element> master{1};
  for (const auto node : nodes) {
    const auto minus = field.constant(-node);
    master.push_back(master.back());
    for (std::size_t k = master.size() - 2; k > 0; --k) {
      master[k] = field.add(master[k - 1], field.multiply(minus, master[k]));
    }
    master[0] = field.multiply(minus, master[0]);
  }
  std::vector<std::vector<PrimeField::Element>> rows(n, std::vector<PrimeField::Element>(n));
  for (std::size_t j = 0; j < n; ++j) {
    // synthetic division: quotient = master / (t - t_j); its value at t_j scales the Lagrange basis
    std::vector<PrimeField::Element> quotient(n);
    PrimeField::Element carry = 0;
    for (std::size_t k = n; k-- > 0;) {
      carry = field.add(master[k + 1], field.multiply(carry, nodes[j]));
      quotient[k] = carry;
    }
    PrimeField::Element value = 0;
    for (std::size_t k = n; k-- > 0;) {
      value = field.add(quotient[k], field.multiply(value, nodes[j]));
    }
    const auto scale = field.inverse(value);
    for (std::size_t k = 0; k < n; ++k) rows[k][j] = field.multiply(scale, quotient[k]);
  }
  return rows;
}

}  // namespace fathom::exact
