#include <cstring>

#include "engine/cpu/cpu_ops.h"
#include "engine/require.h"

namespace fathom::engine::cpu {
namespace {

/// Rows are summed in this many parts whatever the number of threads, so that the gradients of
/// gain and bias do not depend on it.
constexpr std::int64_t kParts = 16;

}  // namespace

BoundOp bind(const Norm& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  const NormArgs args{context.operand(op.x),    context.operand(op.branch),
                      context.operand(op.r),    context.operand(op.y),
                      context.floats(op.gain),  context.floats(op.bias),
                      context.floats(op.stats), x.cols,
                      op.kind == NormKind::rms, op.epsilon,
                      op.stream_scale,          op.branch_scale};
  return [args, rows = x.rows, &kernels = context.kernels,
          threads = context.threads](const StepScalars&) {
    parallel_ranges(threads, rows, 1, [&](std::int64_t begin, std::int64_t end) {
      kernels.norm_forward(args, begin, end);
    });
  };
}

BoundOp bind(const NormBackward& op, const Context& context) {
  const Tensor& r = context.tensor(op.r);
  const NormBackwardArgs args{context.operand(op.dy),
                              context.operand(op.incoming),
                              context.operand(op.r),
                              context.operand(op.dx),
                              context.operand(op.d_branch),
                              context.floats(op.stats),
                              context.floats(op.gain),
                              r.cols,
                              op.kind == NormKind::rms,
                              op.dx_mode == GradMode::accumulate,
                              op.d_branch_mode == GradMode::accumulate,
                              op.stream_scale,
                              op.branch_scale};
  const std::int64_t width = r.cols;
  const bool narrow = op.dx.exists() && context.tensor(op.dx).dtype != r.dtype;
  require(!narrow, "norm: this plan is for another device");
  context.scratch->reserve(2 * kParts * width);
  struct Sum {
    float* target;
    bool accumulate;
  };
  const Sum gain{context.floats(op.d_gain), op.d_gain_mode == GradMode::accumulate};
  const Sum bias{context.floats(op.d_bias), op.d_bias_mode == GradMode::accumulate};
  return [args, gain, bias, width, rows = r.rows, &kernels = context.kernels,
          threads = context.threads, scratch = context.scratch](const StepScalars&) {
    float* gains = gain.target ? scratch->data() : nullptr;
    float* biases = bias.target ? scratch->data() + kParts * width : nullptr;
    parallel_items(threads, kParts, [&](std::int64_t part, int) {
      float* own_gain = gains ? gains + part * width : nullptr;
      float* own_bias = biases ? biases + part * width : nullptr;
      const auto row_bytes = static_cast<std::size_t>(width) * sizeof(float);
      if (own_gain) std::memset(own_gain, 0, row_bytes);
      if (own_bias) std::memset(own_bias, 0, row_bytes);
      kernels.norm_backward(args, rows * part / kParts, rows * (part + 1) / kParts, own_gain,
                            own_bias);
    });
    const auto collect = [&](const Sum& sum, float* parts) {
      if (!sum.target) return;
      const PeriodSumArgs sums{{parts, false}, sum.target, kParts, width, 1, 1.0f, sum.accumulate};
      kernels.column_sum(sums, 0, width);
    };
    collect(gain, gains);
    collect(bias, biases);
  };
}

}  // namespace fathom::engine::cpu
