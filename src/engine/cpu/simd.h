// Vectors of the instruction set a translation unit is compiled for, and the few functions on them
// that kernels need. FATHOM_ISA names the namespace (portable, avx2, avx512, avx512bf16), so that
// the four builds of one kernel never clash in the linker. Only for ops/*_simd.cpp.
#pragma once

#ifdef __AVX512F__
#include <immintrin.h>  // only functions that are always inlined
#endif

#include <cstdint>

#include "engine/cpu/kernels.h"

namespace fathom::engine::cpu::FATHOM_ISA {

inline constexpr std::int64_t kLanes = FATHOM_LANES;
typedef float Vec __attribute__((vector_size(FATHOM_LANES * 4)));
typedef std::int32_t VecI __attribute__((vector_size(FATHOM_LANES * 4)));
typedef std::uint32_t VecU __attribute__((vector_size(FATHOM_LANES * 4)));
typedef std::uint16_t VecH __attribute__((vector_size(FATHOM_LANES * 2)));
typedef float LooseVec __attribute__((vector_size(FATHOM_LANES * 4), aligned(4), may_alias));
typedef std::uint16_t LooseVecH
    __attribute__((vector_size(FATHOM_LANES * 2), aligned(2), may_alias));

struct Bf16 {
  std::uint16_t bits;
};

static inline Vec splat(float value) {
  return value - Vec{};
}
static inline Vec load(const float* p) {
  return *reinterpret_cast<const LooseVec*>(p);
}
static inline void store(float* p, Vec v) {
  *reinterpret_cast<LooseVec*>(p) = v;
}

static inline Vec load(const Bf16* p) {
  const VecH half = *reinterpret_cast<const LooseVecH*>(p);
  return (Vec)(__builtin_convertvector(half, VecU) << 16);
}
/// Rounds to nearest even.
static inline void store(Bf16* p, Vec v) {
#ifdef __AVX512BF16__
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh((__m512)v));
#else
  const VecU bits = (VecU)v;
  const VecU rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  *reinterpret_cast<LooseVecH*>(p) = __builtin_convertvector(rounded, VecH);
#endif
}

/// The first `count` < kLanes elements; the rest reads as zero and is not written.
template <class T>
static inline Vec load_part(const T* p, std::int64_t count) {
  T buffer[kLanes] = {};
  for (std::int64_t i = 0; i < count; ++i) buffer[i] = p[i];
  return load(buffer);
}
template <class T>
static inline void store_part(T* p, Vec v, std::int64_t count) {
  T buffer[kLanes];
  store(buffer, v);
  for (std::int64_t i = 0; i < count; ++i) p[i] = buffer[i];
}

/// body(i, count) over [0, size) in vectors; count < kLanes for the last part.
template <class Body>
static inline void for_vectors(std::int64_t size, Body body) {
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) body(i, kLanes);
  if (i < size) body(i, size - i);
}
template <class T>
static inline Vec load_upto(const T* p, std::int64_t count) {
  return count == kLanes ? load(p) : load_part(p, count);
}
template <class T>
static inline void store_upto(T* p, Vec v, std::int64_t count) {
  count == kLanes ? store(p, v) : store_part(p, v, count);
}

static inline Vec select(VecI mask, Vec yes, Vec no) {
  return mask ? yes : no;
}
static inline Vec max(Vec a, Vec b) {
  return select(a > b, a, b);
}
static inline Vec min(Vec a, Vec b) {
  return select(a < b, a, b);
}
static inline Vec abs(Vec a) {
  return (Vec)((VecI)a & 0x7fffffff);
}
static inline Vec square_root(Vec a) {
#ifdef __AVX512F__
  return (Vec)_mm512_sqrt_ps((__m512)a);
#else
  for (std::int64_t i = 0; i < kLanes; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
#endif
}

/// Lane numbers 0, 1, ...
static inline VecI lane_numbers() {
  VecI numbers;
  for (std::int32_t i = 0; i < kLanes; ++i) numbers[i] = i;
  return numbers;
}

/// Lane i of the result is lane places[i] of a, or from kLanes on, lane places[i] - kLanes of b.
static inline Vec shuffle(Vec a, Vec b, VecI places) {
#ifdef __clang__  // shuffles by constants only; speed does not matter there (fuzz targets)
  Vec result;
  for (std::int32_t i = 0; i < kLanes; ++i) {
    result[i] = places[i] < kLanes ? a[places[i]] : b[places[i] - kLanes];
  }
  return result;
#else
  return __builtin_shuffle(a, b, places);
#endif
}

/// Lane i of the result is lane i ^ step.
static inline Vec exchange(Vec a, std::int32_t step) {
  return shuffle(a, a, lane_numbers() ^ step);
}

/// Halves are added (or compared) pairwise: a fixed order.
static inline float sum(Vec v) {
  for (std::int32_t step = kLanes / 2; step > 0; step /= 2) v += exchange(v, step);
  return v[0];
}
static inline float largest(Vec v) {
  for (std::int32_t step = kLanes / 2; step > 0; step /= 2) v = max(v, exchange(v, step));
  return v[0];
}

/// v[i][j] <- v[j][i]: blocks of two by two of growing size exchange their off-diagonal parts.
static inline void transpose(Vec v[kLanes]) {
#pragma GCC unroll 4
  for (std::int32_t step = 1; step < kLanes; step *= 2) {
    const VecI numbers = lane_numbers(), odd = (numbers & step) != 0;
    const VecI low = odd ? numbers + (FATHOM_LANES - step) : numbers;
    const VecI high = odd ? numbers + FATHOM_LANES : numbers + step;
#pragma GCC unroll 16
    for (std::int32_t i = 0; i < kLanes; ++i) {
      if (i & step) continue;
      const Vec a = v[i], b = v[i + step];
      v[i] = shuffle(a, b, low);
      v[i + step] = shuffle(a, b, high);
    }
  }
}

/// exp with a relative error below 2e-7; 0 below -87.3, so that masked scores vanish exactly;
/// a NaN is passed through.
static inline Vec exp(Vec x) {
  const Vec limit = splat(88.0f);
  const Vec clamped = select(limit < x, limit, x);
  const Vec magic = splat(12582912.0f);  // 1.5 * 2^23: rounds to the nearest integer
  const Vec shifted = clamped * 1.44269504088896341f + magic;
  const Vec n = shifted - magic;
  Vec r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Vec p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // The low bits of `shifted` are n, those of `magic` are zero.
  // Unsigned: values below -87.3 wrap around and are replaced.
  const Vec value = (Vec)((VecU)p + ((VecU)shifted << 23));
  return select(x < splat(-87.3f), Vec{}, value);
}

/// Calls body with a Type<T> for the operand's element type T.
template <class T>
struct Type {
  using type = T;
};
template <class Body>
static inline void with_type(Operand operand, Body body) {
  if (operand.bf16) {
    body(Type<Bf16>{});
  } else {
    body(Type<float>{});
  }
}
template <class Tag>
using ElementOf = typename Tag::type;

/// place = value, or place += value.
template <class T>
static inline void put(T* place, Vec value, std::int64_t count, bool accumulate) {
  store_upto(place, accumulate ? value + load_upto(place, count) : value, count);
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
