#include "engine/cpu/simd.h"

namespace fathom::engine::cpu::FATHOM_ISA {

void adamw(const AdamWArgs& args, std::int64_t begin, std::int64_t end) {
  for_vectors(end - begin, [&](std::int64_t offset, std::int64_t count) {
    const std::int64_t i = begin + offset;
    const Vec g = load_upto(args.gradient + i, count) * args.gradient_factor;
    const Vec m = load_upto(args.m + i, count) * args.beta1 + g * (1.0f - args.beta1);
    const Vec v = load_upto(args.v + i, count) * args.beta2 + g * g * (1.0f - args.beta2);
    const Vec step = (m * args.correction1) / (square_root(v * args.correction2) + args.epsilon);
    const Vec p = load_upto(args.parameter + i, count);
    store_upto(args.m + i, m, count);
    store_upto(args.v + i, v, count);
    store_upto(args.parameter + i, p - p * args.decay_rate - step * args.learning_rate, count);
  });
}

double sum_of_squares(const float* values, std::int64_t count) {
  double total = 0;
  for (std::int64_t start = 0; start < count; start += 4096) {
    const std::int64_t size = count - start < 4096 ? count - start : 4096;
    Vec sums{};
    for_vectors(size, [&](std::int64_t i, std::int64_t part) {
      const Vec v = load_upto(values + start + i, part);
      sums += v * v;
    });
    total += static_cast<double>(sum(sums));
  }
  return total;
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
