#include "engine/cpu/simd.h"

namespace fathom::engine::cpu::FATHOM_ISA {
namespace {

template <class T>
void gradient_row(const SoftmaxLossArgs& args, std::int64_t row, float top, float inverse_sum) {
  const float* z = args.logits + row * args.classes;
  T* dz = static_cast<T*>(args.dz.data) + row * args.classes;
  const std::int32_t target = args.targets[row];
  const float factor = target < 0 ? 0.0f : args.loss_scale * args.scale;
  const float target_logit = target < 0 ? 0.0f : z[target];  // dz may be z
  for_vectors(args.classes, [&](std::int64_t i, std::int64_t count) {
    store_upto(dz + i, exp(load_upto(z + i, count) - top) * (inverse_sum * factor), count);
  });
  if (target < 0) return;
  const Vec p = exp(splat(target_logit - top)) * inverse_sum;
  store_part(dz + target, (p - 1.0f) * factor, 1);
}

void scale_and_shift(const SoftmaxLossArgs& args, float* z) {
  for_vectors(args.classes, [&](std::int64_t i, std::int64_t count) {
    Vec value = load_upto(z + i, count) * args.scale;
    if (args.bias) value += load_upto(args.bias + i, count);
    store_upto(z + i, value, count);
  });
}

float largest_of(const float* z, std::int64_t count) {
  Vec tops = splat(z[0]);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) tops = max(tops, load(z + i));
  float top = largest(tops);
  for (; i < count; ++i) top = z[i] > top ? z[i] : top;
  return top;
}

float sum_of_exp(const float* z, std::int64_t count, float top) {
  Vec sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sums += exp(load(z + i) - top);
  float total = sum(sums);
  if (i == count) return total;
  float rest[kLanes];
  store(rest, exp(load_part(z + i, count - i) - top));
  for (std::int64_t k = 0; k < count - i; ++k) total += rest[k];
  return total;
}

}  // namespace

void softmax_loss(const SoftmaxLossArgs& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    float* z = args.logits + row * args.classes;
    if (args.bias || args.scale != 1.0f) scale_and_shift(args, z);
    const float top = largest_of(z, args.classes);
    const float total = sum_of_exp(z, args.classes, top);
    const std::int32_t target = args.targets[row];
    args.losses[row] = target < 0 ? 0.0f : __builtin_logf(total) - (z[target] - top);
    if (!args.dz) continue;
    with_type(args.dz, [&](auto type) {
      gradient_row<ElementOf<decltype(type)>>(args, row, top, 1.0f / total);
    });
  }
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
