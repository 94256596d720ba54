// A number of 300 bits (MPFR) with the operators that the templates of the lab use: the referee.
#pragma once

#include <mpfr.h>

#include <utility>

namespace fathom::lab {

class MpfrReal {
 public:
  static constexpr mpfr_prec_t kBits = 300;

  MpfrReal() : MpfrReal(0.0) {}
  explicit MpfrReal(double value) {
    mpfr_init2(value_, kBits);
    mpfr_set_d(value_, value, MPFR_RNDN);
  }
  MpfrReal(const MpfrReal& other) : MpfrReal() { mpfr_set(value_, other.value_, MPFR_RNDN); }
  MpfrReal& operator=(const MpfrReal& other) {
    mpfr_set(value_, other.value_, MPFR_RNDN);
    return *this;
  }
  ~MpfrReal() { mpfr_clear(value_); }

  explicit operator double() const { return mpfr_get_d(value_, MPFR_RNDN); }
  mpfr_ptr get() { return value_; }
  mpfr_srcptr get() const { return value_; }

  friend MpfrReal operator+(const MpfrReal& a, const MpfrReal& b) { return binary(mpfr_add, a, b); }
  friend MpfrReal operator-(const MpfrReal& a, const MpfrReal& b) { return binary(mpfr_sub, a, b); }
  friend MpfrReal operator*(const MpfrReal& a, const MpfrReal& b) { return binary(mpfr_mul, a, b); }
  friend MpfrReal operator/(const MpfrReal& a, const MpfrReal& b) { return binary(mpfr_div, a, b); }
  MpfrReal& operator+=(const MpfrReal& b) { return *this = *this + b; }
  MpfrReal& operator-=(const MpfrReal& b) { return *this = *this - b; }
  friend bool operator<(const MpfrReal& a, const MpfrReal& b) {
    return mpfr_less_p(a.value_, b.value_) != 0;
  }
  friend bool operator>(const MpfrReal& a, const MpfrReal& b) { return b < a; }

  friend MpfrReal abs(const MpfrReal& a) { return unary(mpfr_abs, a); }
  friend MpfrReal sqrt(const MpfrReal& a) { return unary(mpfr_sqrt, a); }
  friend MpfrReal exp(const MpfrReal& a) { return unary(mpfr_exp, a); }

 private:
  template <class Function>
  static MpfrReal binary(Function function, const MpfrReal& a, const MpfrReal& b) {
    MpfrReal result;
    function(result.value_, a.value_, b.value_, MPFR_RNDN);
    return result;
  }
  template <class Function>
  static MpfrReal unary(Function function, const MpfrReal& a) {
    MpfrReal result;
    function(result.value_, a.value_, MPFR_RNDN);
    return result;
  }

  mpfr_t value_;
};

}  // namespace fathom::lab
