// Numbers of 106 bits as unevaluated sums of two doubles (Dekker 1971; Knuth's two-sum, products
// by fused multiply-add). The value is hi + lo with |lo| at most half a unit of hi's last place.
//
// Relative error: a few units of 2^-104 for + - * / and sqrt, a few of 2^-100 for exp (checked
// against MPFR in tests/lab/double_double_test.cpp). The code must not be contracted or
// reassociated: CMakeLists.txt compiles its users with -ffp-contract=off.
#pragma once

#include <cmath>
#include <compare>

namespace fathom::lab {

struct DoubleDouble {
  double hi = 0;
  double lo = 0;

  DoubleDouble() = default;
  DoubleDouble(double value) : hi(value) {}  // NOLINT: numbers convert
  DoubleDouble(double high, double low) : hi(high), lo(low) {}
  explicit operator double() const { return hi + lo; }

  /// a + b exactly.
  static DoubleDouble two_sum(double a, double b) {
    const double sum = a + b;
    const double part = sum - a;
    return {sum, (a - (sum - part)) + (b - part)};
  }
  /// The same for |a| >= |b|.
  static DoubleDouble quick_two_sum(double a, double b) {
    const double sum = a + b;
    return {sum, b - (sum - a)};
  }
  /// a b exactly.
  static DoubleDouble two_product(double a, double b) {
    const double product = a * b;
    return {product, std::fma(a, b, -product)};
  }

  friend DoubleDouble operator+(const DoubleDouble& a, const DoubleDouble& b) {
    DoubleDouble high = two_sum(a.hi, b.hi);
    const DoubleDouble low = two_sum(a.lo, b.lo);
    high = quick_two_sum(high.hi, high.lo + low.hi);
    return quick_two_sum(high.hi, high.lo + low.lo);
  }
  friend DoubleDouble operator-(const DoubleDouble& a) { return {-a.hi, -a.lo}; }
  friend DoubleDouble operator-(const DoubleDouble& a, const DoubleDouble& b) { return a + (-b); }
  friend DoubleDouble operator*(const DoubleDouble& a, const DoubleDouble& b) {
    const DoubleDouble product = two_product(a.hi, b.hi);
    return quick_two_sum(product.hi, product.lo + (a.hi * b.lo + a.lo * b.hi));
  }
  friend DoubleDouble operator/(const DoubleDouble& a, const DoubleDouble& b) {
    const double first = a.hi / b.hi;
    DoubleDouble rest = a - b * DoubleDouble(first);
    const double second = rest.hi / b.hi;
    rest = rest - b * DoubleDouble(second);
    return quick_two_sum(first, second) + DoubleDouble(rest.hi / b.hi);
  }
  DoubleDouble& operator+=(const DoubleDouble& other) { return *this = *this + other; }
  DoubleDouble& operator-=(const DoubleDouble& other) { return *this = *this - other; }
  DoubleDouble& operator*=(const DoubleDouble& other) { return *this = *this * other; }
  DoubleDouble& operator/=(const DoubleDouble& other) { return *this = *this / other; }

  friend bool operator<(const DoubleDouble& a, const DoubleDouble& b) {
    return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
  }
  friend bool operator>(const DoubleDouble& a, const DoubleDouble& b) { return b < a; }
};

inline DoubleDouble abs(const DoubleDouble& x) {
  return x.hi < 0 ? -x : x;
}

/// One Newton step from the double root.
inline DoubleDouble sqrt(const DoubleDouble& x) {
  if (!(x.hi > 0)) return 0;
  const double root = std::sqrt(x.hi);
  const DoubleDouble rest = x - DoubleDouble::two_product(root, root);
  return DoubleDouble::quick_two_sum(root, rest.hi / (2 * root));
}

/// e^x = 2^k (e^r)^512 with |512 r| <= ln 2 / 2: the series of e^r - 1, then s <- 2 s + s^2 nine
/// times, which keeps the digits that forming 1 + s too early would lose.
inline DoubleDouble exp(const DoubleDouble& x) {
  constexpr int kHalvings = 9;
  constexpr int kTerms = 10;  // (ln 2 / 1024)^11 / 11! < 2^-140
  if (x.hi < -708) return 0;
  const DoubleDouble ln2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  const double k = std::nearbyint(x.hi / ln2.hi);
  DoubleDouble r = x - DoubleDouble(k) * ln2;
  r.hi = std::ldexp(r.hi, -kHalvings);
  r.lo = std::ldexp(r.lo, -kHalvings);
  DoubleDouble sum = 0;
  for (int n = kTerms; n >= 1; --n) sum = (sum + DoubleDouble(1)) * r / DoubleDouble(n);
  for (int i = 0; i < kHalvings; ++i) sum = sum + sum + sum * sum;
  sum += DoubleDouble(1);
  const int power = static_cast<int>(k);
  return {std::ldexp(sum.hi, power), std::ldexp(sum.lo, power)};
}

}  // namespace fathom::lab
