#include "engine/cpu/cpu_ops.h"

namespace fathom::engine::cpu {
namespace {

/// Rows of logits held at once: about 4 MB, so that they stay in the cache between the GEMM,
/// the softmax and the two GEMMs of backward.
std::int64_t chunk_rows(std::int64_t rows, std::int64_t classes) {
  const std::int64_t fitting = std::max<std::int64_t>(64, (std::int64_t{1} << 20) / classes);
  return std::min(rows, fitting / 16 * 16);
}

struct ChunkGemms {
  std::shared_ptr<Matmul> logits, input, weight_first, weight_more;
};

/// The loss of all rows, chunk by chunk, and its gradients where they are asked for.
class ChunkedHead : public std::enable_shared_from_this<ChunkedHead> {
 public:
  ChunkedHead(const HeadLossBackward& op, const Context& context)
      : context_(context),
        type_(context.tensor(op.x).dtype),
        rows_(context.tensor(op.x).rows),
        width_(context.tensor(op.x).cols),
        classes_(context.tensor(op.weight).rows),
        chunk_(chunk_rows(rows_, classes_)),
        scale_(op.scale),
        x_(context.operand(op.x)),
        dx_(context.operand(op.dx)),
        weight_(context.address(op.weight)),
        d_weight_(context.floats(op.d_weight)),
        bias_(context.floats(op.bias)),
        d_bias_(context.floats(op.d_bias)),
        d_bias_accumulates_(op.d_bias_mode == GradMode::accumulate),
        targets_(context.tokens(op.targets)),
        losses_(context.floats(op.losses)),
        loss_(context.floats(op.loss)),
        gradients_(op.dx.exists() || op.d_weight.exists() || op.d_bias.exists()) {
    main_ = make_products(op, chunk_);
    if (rows_ % chunk_ != 0) last_ = make_products(op, rows_ % chunk_);
    context.scratch->reserve(2 * chunk_ * classes_);
  }

  void run(const StepScalars& scalars) {
    for (std::int64_t first = 0; first < rows_; first += chunk_) {
      const std::int64_t count = std::min(chunk_, rows_ - first);
      run_chunk(count == chunk_ ? main_ : last_, first, count, scalars.loss_scale);
    }
    double total = 0;
    for (std::int64_t n = 0; n < rows_; ++n) total += static_cast<double>(losses_[n]);
    *loss_ = static_cast<float>(total * static_cast<double>(scalars.loss_scale));
  }

 private:
  ChunkGemms make_products(const HeadLossBackward& op, std::int64_t rows) const {
    ChunkGemms gemms;
    gemms.logits = context_.matmul(
        {.m = rows, .n = classes_, .k = width_, .transpose_b = true, .input = type_});
    if (op.dx.exists()) {
      gemms.input = context_.matmul({.m = rows,
                                     .n = width_,
                                     .k = classes_,
                                     .input = type_,
                                     .result = context_.tensor(op.dx).dtype,
                                     .accumulate = op.dx_mode == GradMode::accumulate});
    }
    if (!op.d_weight.exists()) return gemms;
    MatmulSpec weight{.m = classes_, .n = width_, .k = rows, .transpose_a = true, .input = type_};
    weight.accumulate = op.d_weight_mode == GradMode::accumulate;
    gemms.weight_first = context_.matmul(weight);
    weight.accumulate = true;
    gemms.weight_more = context_.matmul(weight);
    return gemms;
  }

  const void* at_row(Operand operand, std::int64_t row) const {
    const std::int64_t size = bytes_of(operand.bf16 ? DType::bf16 : DType::f32);
    return static_cast<const char*>(operand.data) + row * width_ * size;
  }

  void run_chunk(const ChunkGemms& gemms, std::int64_t first, std::int64_t count,
                 float loss_scale) {
    dnnl::stream& stream = *context_.stream;
    float* logits = context_.scratch->data();
    // In bf16 the gradient has its own memory, half the size of the logits.
    const bool half = type_ == DType::bf16;
    const Operand dz{half ? logits + chunk_ * classes_ : logits, half};
    gemms.logits->run(stream, at_row(x_, first), weight_, logits);
    const SoftmaxLossArgs args{logits,           bias_,           gradients_ ? dz : Operand{},
                               targets_ + first, losses_ + first, classes_,
                               scale_,           loss_scale};
    parallel_ranges(context_.threads, count, 1, [&](std::int64_t begin, std::int64_t end) {
      context_.kernels.softmax_loss(args, begin, end);
    });
    if (gemms.input) {
      gemms.input->run(stream, dz.data, weight_, const_cast<void*>(at_row(dx_, first)));
    }
    if (d_weight_) {
      const auto& gemm = first == 0 ? gemms.weight_first : gemms.weight_more;
      gemm->run(stream, dz.data, at_row(x_, first), d_weight_);
    }
    if (!d_bias_) return;
    const PeriodSumArgs sums{
        dz, d_bias_, count, classes_, 1, 1 / scale_, first > 0 || d_bias_accumulates_};
    context_.kernels.column_sum(sums, 0, classes_);
  }

  Context context_;
  DType type_;
  std::int64_t rows_, width_, classes_, chunk_;
  float scale_;
  Operand x_, dx_;
  void* weight_;
  float* d_weight_;
  float* bias_;
  float* d_bias_;
  bool d_bias_accumulates_;
  const std::int32_t* targets_;
  float* losses_;
  float* loss_;
  bool gradients_;
  ChunkGemms main_, last_;
};

}  // namespace

BoundOp bind(const HeadLossBackward& op, const Context& context) {
  const auto head = std::make_shared<ChunkedHead>(op, context);
  return [head](const StepScalars& scalars) { head->run(scalars); };
}

BoundOp bind(const HeadLoss& op, const Context& context) {
  HeadLossBackward without_gradients{};
  without_gradients.x = op.x;
  without_gradients.weight = op.weight;
  without_gradients.bias = op.bias;
  without_gradients.targets = op.targets;
  without_gradients.losses = op.losses;
  without_gradients.loss = op.loss;
  without_gradients.scale = op.scale;
  return bind(without_gradients, context);
}

BoundOp bind(const Logits& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  const Tensor& logits = context.tensor(op.logits);
  const auto gemm = context.matmul(
      {.m = x.rows, .n = logits.cols, .k = x.cols, .transpose_b = true, .input = x.dtype});
  const CombineArgs scaled{context.operand(op.logits),
                           context.operand(op.bias),
                           context.operand(op.logits),
                           op.scale,
                           1,
                           false};
  return [gemm, scaled, rows = x.rows, cols = logits.cols, stream = context.stream,
          a = context.address(op.x), b = context.address(op.weight), c = context.floats(op.logits),
          &kernels = context.kernels](const StepScalars&) {
    gemm->run(*stream, a, b, c);
    if (!scaled.y && scaled.a == 1) return;
    for (std::int64_t row = 0; row < rows; ++row) {
      CombineArgs own = scaled;
      own.x.data = own.out.data = c + row * cols;
      kernels.combine(own, 0, cols);
    }
  };
}

}  // namespace fathom::engine::cpu
