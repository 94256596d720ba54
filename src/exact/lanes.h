// Eight field elements side by side: one per column of a grid, in doubles.
//
// Sums of products are formed exactly and reduced late: reduce() takes any |x| < 2^52 to the
// balanced representative up to one unit of rounding, |r| <= p/2 + 2. Functions are forced inline
// so that they use the vector instructions of whichever clone calls them.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "exact/prime_field.h"

namespace fathom::exact {

inline constexpr std::size_t kLanes = 8;
/// Products of reduced values that a sum may take before it must be reduced: 128 (2^22 + 2)^2 <
/// 2^52.
inline constexpr std::size_t kLateSums = 128;
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));

/// The standard allocator loses the alignment of a vector type.
template <class T>
struct LaneAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{kLanes * sizeof(double)};
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* pointer, std::size_t) { ::operator delete(pointer, kAlignment); }
  bool operator==(const LaneAllocator&) const = default;
};
using LaneVector = std::vector<Lanes, LaneAllocator<Lanes>>;

/// A Ring over Lanes; see PrimeField for the scalar one.
class LaneField {
 public:
  using Element = Lanes;

  explicit LaneField(const PrimeField& field)
      : prime_(field.prime()), inverse_(1.0 / field.prime()) {}

  [[gnu::always_inline]] Lanes reduce(const Lanes& x) const {
    constexpr double kRound = 0x1.8p52;  // adding and subtracting it rounds to a whole number
    const Lanes quotient = (x * inverse_ + kRound) - kRound;
    return x - quotient * prime_;
  }
  /// The representative in [-(p-1)/2, (p-1)/2] of a reduced value.
  [[gnu::always_inline]] Lanes canonical(const Lanes& x) const {
    const double half = (prime_ - 1) / 2;
    const Lanes lowered = x > half ? x - prime_ : x;
    return lowered < -half ? lowered + prime_ : lowered;
  }
  [[gnu::always_inline]] Lanes zero() const { return Lanes{}; }
  [[gnu::always_inline]] Lanes add(const Lanes& a, const Lanes& b) const { return reduce(a + b); }
  [[gnu::always_inline]] Lanes multiply(const Lanes& a, const Lanes& b) const {
    return reduce(a * b);
  }
  /// sum_i a[i * stride] b[i], reduced every kLateSums terms; a may hold scalars or lanes.
  template <class Factor>
  [[gnu::always_inline]] Lanes dot(const Factor* a, std::size_t stride, const Lanes* b,
                                   std::size_t size) const {
    Lanes sum{};
    for (std::size_t i = 0; i < size; ++i) {
      sum += a[i * stride] * b[i];
      if (i % kLateSums == kLateSums - 1) sum = reduce(sum);
    }
    return reduce(sum);
  }

 private:
  double prime_;
  double inverse_;
};

}  // namespace fathom::exact
