#include <array>
#include <cmath>

#include "engine/cpu/cpu_ops.h"

namespace fathom::engine::cpu {

BoundOp bind(const SquaredNorm& op, const Context& context) {
  // The parts, and so the order of the sum, do not depend on the number of threads.
  constexpr std::int64_t kShares = 64;
  return [gradients = context.floats(op.gradients), norm = context.floats(op.norm),
          size = context.tensor(op.gradients).size(), &kernels = context.kernels,
          threads = context.threads](const StepScalars&) {
    std::array<double, kShares> sums{};
    parallel_ranges(threads, kShares, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t share = first; share < last; ++share) {
        const std::int64_t begin = size * share / kShares, end = size * (share + 1) / kShares;
        sums[static_cast<std::size_t>(share)] =
            kernels.sum_of_squares(gradients + begin, end - begin);
      }
    });
    double total = 0;
    for (const double sum : sums) total += sum;
    *norm = static_cast<float>(std::sqrt(total));
  };
}

BoundOp bind(const AdamW& op, const Context& context) {
  struct Bound {
    AdamWArgs args;
    std::int64_t size;
    float lr_multiplier, weight_decay;
  };
  std::vector<Bound> bound;
  for (const AdamWGroup& group : op.groups) {
    const Tensor& tensor = context.tensor(group.parameter);
    const std::int64_t offset = tensor.offset_bytes / bytes_of(DType::f32);
    AdamWArgs args{};
    args.parameter = context.floats(op.parameters) + offset;
    args.gradient = context.floats(op.gradients) + offset;
    args.m = context.floats(op.moment1) + offset;
    args.v = context.floats(op.moment2) + offset;
    args.beta1 = op.beta1;
    args.beta2 = op.beta2;
    args.epsilon = group.epsilon;
    bound.push_back({args, tensor.size(), group.lr_multiplier, group.weight_decay});
  }
  return [bound, norm = context.floats(op.norm), beta1 = op.beta1, beta2 = op.beta2,
          &kernels = context.kernels, threads = context.threads](const StepScalars& scalars) {
    const double t = static_cast<double>(scalars.step);
    const auto correction = [t](float beta) {
      return static_cast<float>(1 / (1 - std::pow(static_cast<double>(beta), t)));
    };
    const float clip = scalars.clip_norm;
    const float factor = clip > 0 && *norm > clip ? clip / *norm : 1.0f;
    const float correction1 = correction(beta1), correction2 = correction(beta2);
    // One parallel region for all parameters: many are small. Each thread takes its share of
    // every parameter.
    constexpr std::int64_t kShares = 64;
    parallel_ranges(threads, kShares, 1, [&](std::int64_t first, std::int64_t last) {
      for (const Bound& group : bound) {
        AdamWArgs args = group.args;
        args.learning_rate = scalars.learning_rate * group.lr_multiplier;
        args.decay_rate = args.learning_rate * group.weight_decay;
        args.gradient_factor = factor;
        args.correction1 = correction1;
        args.correction2 = correction2;
        kernels.adamw(args, group.size * first / kShares, group.size * last / kShares);
      }
    });
  };
}

BoundOp bind(const CopyParameters& op, const Context& context) {
  struct Copy {
    CombineArgs args;
    std::int64_t size;
  };
  std::vector<Copy> copies;
  for (const TensorId id : op.copies) {
    const Tensor& copy = context.tensor(id);
    copies.push_back(
        {{context.operand(copy.master), {}, context.operand(id), 1, 0, false}, copy.size()});
  }
  return [copies, &kernels = context.kernels, threads = context.threads](const StepScalars&) {
    for (const Copy& copy : copies) {
      parallel_ranges(threads, copy.size, 16, [&](std::int64_t begin, std::int64_t end) {
        kernels.combine(copy.args, begin, end);
      });
    }
  };
}

}  // namespace fathom::engine::cpu
