#include "engine/cpu/simd.h"

namespace fathom::engine::cpu::FATHOM_ISA {

void combine(const CombineArgs& args, std::int64_t begin, std::int64_t end) {
  with_type(args.x, [&](auto x_type) {
    with_type(args.y, [&](auto y_type) {
      with_type(args.out, [&](auto out_type) {
        const auto* x = static_cast<const ElementOf<decltype(x_type)>*>(args.x.data) + begin;
        const auto* y = static_cast<const ElementOf<decltype(y_type)>*>(args.y.data);
        auto* out = static_cast<ElementOf<decltype(out_type)>*>(args.out.data) + begin;
        for_vectors(end - begin, [&](std::int64_t i, std::int64_t count) {
          Vec value = load_upto(x + i, count) * args.a;
          if (y) value += load_upto(y + begin + i, count) * args.b;
          put(out + i, value, count, args.accumulate);
        });
      });
    });
  });
}

namespace {

/// kVecs vectors of columns at once: with one vector per row each would touch a new page.
template <int kVecs, class T>
void sum_vectors(const PeriodSumArgs& args, std::int64_t t, const T* x, float* sums) {
  Vec totals[kVecs] = {};
  for (std::int64_t n = t; n < args.rows; n += args.period) {
    const T* row = x + n * args.width;
#pragma GCC unroll 16
    for (int k = 0; k < kVecs; ++k) totals[k] += load(row + k * kLanes);
  }
#pragma GCC unroll 16
  for (int k = 0; k < kVecs; ++k) {
    put(sums + k * kLanes, totals[k] * args.factor, kLanes, args.accumulate);
  }
}

template <class T>
void sum_rows(const PeriodSumArgs& args, std::int64_t t, std::int64_t begin, std::int64_t end) {
  constexpr int kMany = 12;
  const T* x = static_cast<const T*>(args.x.data);
  float* sums = args.sums + t * args.width;
  std::int64_t i = begin;
  for (; i + kMany * kLanes <= end; i += kMany * kLanes) {
    sum_vectors<kMany>(args, t, x + i, sums + i);
  }
  for (; i + kLanes <= end; i += kLanes) sum_vectors<1>(args, t, x + i, sums + i);
  if (i == end) return;
  Vec total{};
  for (std::int64_t n = t; n < args.rows; n += args.period) {
    total += load_part(x + n * args.width + i, end - i);
  }
  put(sums + i, total * args.factor, end - i, args.accumulate);
}

}  // namespace

void period_sum(const PeriodSumArgs& args, std::int64_t begin, std::int64_t end) {
  with_type(args.x, [&](auto type) {
    for (std::int64_t t = begin; t < end; ++t) {
      sum_rows<ElementOf<decltype(type)>>(args, t, 0, args.width);
    }
  });
}

void column_sum(const PeriodSumArgs& args, std::int64_t begin, std::int64_t end) {
  with_type(args.x, [&](auto type) { sum_rows<ElementOf<decltype(type)>>(args, 0, begin, end); });
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
