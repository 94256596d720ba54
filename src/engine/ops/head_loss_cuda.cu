// Logits exist for a chunk of rows at a time, about as much as the cache holds; their gradient
// exists for a group of chunks, so that its two products are long enough to be fast.
#include <map>

#include "engine/cuda/cuda_ops.h"

namespace fathom::engine::cuda {
namespace {

constexpr std::int64_t kLogitBytes = std::int64_t{32} << 20;
constexpr std::int64_t kGradientBytes = std::int64_t{320} << 20;
constexpr std::int64_t kRowUnit = 128;  // keeps every chunk aligned

std::int64_t fitting_rows(std::int64_t rows, std::int64_t bytes_per_row, std::int64_t bytes) {
  const std::int64_t fitting = std::max(kRowUnit, bytes / bytes_per_row / kRowUnit * kRowUnit);
  return std::min(rows, fitting);
}

struct LossArgs {
  float* logits;  // bare products times scale; f32 gradients take their place
  const float* bias;
  Operand dz;  // absent: losses only
  const std::int32_t* targets;
  float* losses;
  const DeviceScalars* scalars;
  std::int64_t classes;
  float scale;
};

struct TopAndSum {
  float top, sum;  // the largest logit and the sum of exp(z - top)
};

__device__ inline TopAndSum joined(TopAndSum a, TopAndSum b) {
  const float top = fmaxf(a.top, b.top);
  if (top == -INFINITY) return {top, 0};
  return {top, a.sum * __expf(a.top - top) + b.sum * __expf(b.top - top)};
}

/// Block: one row.
template <int V>
__global__ void loss_kernel(LossArgs a) {
  __shared__ TopAndSum shared[33];
  const std::int64_t row = blockIdx.x;
  float* logits = a.logits + row * a.classes;
  const int target = a.targets[row], lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const auto read = [&](std::int64_t c) {
    Pack<V> z = load<V>(logits + c);
    if (a.bias != nullptr) {
      const Pack<V> bias = load<V>(a.bias + c);
#pragma unroll
      for (int j = 0; j < V; ++j) z.v[j] += bias.v[j];
    }
    return z;
  };
  TopAndSum own{-INFINITY, 0};
  for (std::int64_t c = threadIdx.x * V; c < a.classes; c += blockDim.x * V) {
    const Pack<V> z = read(c);
    float top = z.v[0], sum = 0;
#pragma unroll
    for (int j = 1; j < V; ++j) top = fmaxf(top, z.v[j]);
#pragma unroll
    for (int j = 0; j < V; ++j) sum += __expf(z.v[j] - top);
    own = joined(own, {top, sum});
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    own = joined(own, {__shfl_xor_sync(0xffffffffu, own.top, offset),
                       __shfl_xor_sync(0xffffffffu, own.sum, offset)});
  }
  if (lane == 0) shared[warp] = own;
  __syncthreads();
  TopAndSum all = shared[0];
  for (int w = 1; w < blockDim.x / 32; ++w) all = joined(all, shared[w]);
  const bool counts = target >= 0;
  if (threadIdx.x == 0) {
    float z = counts ? logits[target] : 0;
    if (counts && a.bias != nullptr) z += a.bias[target];
    a.losses[row] = counts ? all.top + logf(all.sum) - z : 0.0f;
  }
  if (!a.dz) return;
  __syncthreads();  // the target's logit is read before its place is taken
  const float factor = counts ? a.scale * a.scalars->loss_scale : 0.0f;
  const float inverse = 1 / all.sum;
  for (std::int64_t c = threadIdx.x * V; c < a.classes; c += blockDim.x * V) {
    Pack<V> z = read(c);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float p = __expf(z.v[j] - all.top) * inverse;
      z.v[j] = factor * (p - (c + j == target ? 1.0f : 0.0f));
    }
    store<V>(a.dz, row * a.classes + c, z);
  }
}

/// loss = loss_scale * sum of losses, in double, by one block.
__global__ void total_kernel(const float* losses, std::int64_t rows, const DeviceScalars* scalars,
                             float* loss) {
  __shared__ double shared[33];
  double sum = 0;
  for (std::int64_t n = threadIdx.x; n < rows; n += blockDim.x) sum += losses[n];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *loss = static_cast<float>(sum * scalars->loss_scale);
}

class ChunkedHead {
 public:
  ChunkedHead(const HeadLossBackward& op, const Context& context)
      : context_(context),
        type_(context.tensor(op.x).dtype),
        rows_(context.tensor(op.x).rows),
        width_(context.tensor(op.x).cols),
        classes_(context.tensor(op.weight).rows),
        op_(op),
        gradients_(op.dx.exists() || op.d_weight.exists() || op.d_bias.exists()) {
    // f32 gradients take the logits' place, so there a chunk is a group.
    const bool separate = gradients_ && type_ == DType::bf16;
    chunk_ = fitting_rows(rows_, classes_ * 4, kLogitBytes);
    group_ = separate ? fitting_rows(rows_, classes_ * 2, kGradientBytes) : chunk_;
    if (group_ < rows_) group_ = group_ / chunk_ * chunk_;
    logit_bytes_ = chunk_ * classes_ * 4;
    const std::int64_t gradient_bytes = separate ? group_ * classes_ * 2 : 0;
    context.scratch->reserve(logit_bytes_ + gradient_bytes);
    for (std::int64_t first = 0; op.d_bias.exists() && first < rows_; first += group_) {
      const std::int64_t count = std::min(group_, rows_ - first);
      const bool adds = first > 0 || op.d_bias_mode == GradMode::accumulate;
      bias_sums_[{first > 0, count}] = bind_period_sum(
          context, [this] { return gradient(0); }, context.floats(op.d_bias), count, classes_, 1,
          1 / op.scale, adds ? GradMode::accumulate : GradMode::overwrite,
          logit_bytes_ + gradient_bytes);
    }
  }

  /// Plans every product the run will ask for, once the scratch has its place.
  void prepare() {
    for (std::int64_t first = 0; first < rows_; first += group_) {
      const std::int64_t count = std::min(group_, rows_ - first);
      for (std::int64_t row = first; row < first + count; row += chunk_) {
        logits_product(row, std::min(chunk_, first + count - row));
      }
      if (op_.dx.exists()) input_product(first, count);
      if (op_.d_weight.exists()) weight_product(first, count);
    }
  }

  void run(cudaStream_t stream) {
    for (std::int64_t first = 0; first < rows_; first += group_) {
      const std::int64_t count = std::min(group_, rows_ - first);
      for (std::int64_t row = first; row < first + count; row += chunk_) {
        run_chunk(row, std::min(chunk_, first + count - row), row - first, stream);
      }
      run_gradients(first, count, stream);
    }
    total_kernel<<<1, 1024, 0, stream>>>(context_.floats(op_.losses), rows_, context_.scalars,
                                         context_.floats(op_.loss));
    check_launch("loss");
  }

 private:
  void* at_row(TensorId id, std::int64_t row) const {
    const Tensor& tensor = context_.tensor(id);
    return static_cast<char*>(context_.address(id)) + row * tensor.cols * bytes_of(tensor.dtype);
  }
  char* logits() const { return static_cast<char*>(context_.scratch->data()); }
  Operand gradient(std::int64_t row_of_group) const {
    if (type_ == DType::f32) return {logits(), false};
    return {logits() + logit_bytes_ + row_of_group * classes_ * 2, true};
  }

  void run_chunk(std::int64_t row, std::int64_t count, std::int64_t row_of_group,
                 cudaStream_t stream) {
    logits_product(row, count)(stream);
    const LossArgs args{reinterpret_cast<float*>(logits()),
                        context_.floats(op_.bias),
                        gradients_ ? gradient(row_of_group) : Operand{},
                        context_.tokens(op_.targets) + row,
                        context_.floats(op_.losses) + row,
                        context_.scalars,
                        classes_,
                        op_.scale};
    const auto grid = static_cast<unsigned>(count);
    if (classes_ % 4 == 0) {
      loss_kernel<4><<<grid, classes_ <= 2048 ? 128 : 256, 0, stream>>>(args);
    } else {
      loss_kernel<1><<<grid, 256, 0, stream>>>(args);
    }
    check_launch("head loss");
  }

  BoundOp bound(const ProductSpec& spec, const ProductOperands& operands) const {
    return [product = context_.products.get(spec, operands), operands](cudaStream_t stream) {
      product->run(operands, stream);
    };
  }
  BoundOp logits_product(std::int64_t row, std::int64_t count) const {
    return bound({.m = count,
                  .n = classes_,
                  .k = width_,
                  .transpose_b = true,
                  .input = type_,
                  .alpha = op_.scale},
                 {at_row(op_.x, row), context_.address(op_.weight), logits()});
  }
  BoundOp input_product(std::int64_t first, std::int64_t count) const {
    return bound({.m = count,
                  .n = width_,
                  .k = classes_,
                  .input = type_,
                  .result = context_.tensor(op_.dx).dtype,
                  .accumulate = op_.dx_mode == GradMode::accumulate},
                 {gradient(0).data, context_.address(op_.weight), at_row(op_.dx, first)});
  }
  BoundOp weight_product(std::int64_t first, std::int64_t count) const {
    return bound({.m = classes_,
                  .n = width_,
                  .k = count,
                  .transpose_a = true,
                  .input = type_,
                  .accumulate = first > 0 || op_.d_weight_mode == GradMode::accumulate},
                 {gradient(0).data, at_row(op_.x, first), context_.address(op_.d_weight)});
  }

  void run_gradients(std::int64_t first, std::int64_t count, cudaStream_t stream) {
    if (op_.dx.exists()) input_product(first, count)(stream);
    if (op_.d_weight.exists()) weight_product(first, count)(stream);
    if (op_.d_bias.exists()) bias_sums_.at({first > 0, count})(stream);
  }

  Context context_;
  DType type_;
  std::int64_t rows_, width_, classes_, chunk_ = 0, group_ = 0, logit_bytes_ = 0;
  HeadLossBackward op_;
  bool gradients_;
  std::map<std::pair<bool, std::int64_t>, BoundOp> bias_sums_;  // by (adds to earlier ones, rows)
};

__global__ void bias_rows_kernel(float* logits, const float* bias, std::int64_t size,
                                 std::int64_t classes) {
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < size;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    logits[i] += bias[i % classes];
  }
}

}  // namespace

BoundOp bind(const HeadLossBackward& op, const Context& context) {
  const auto head = std::make_shared<ChunkedHead>(op, context);
  context.when_ready([head] { head->prepare(); });
  return [head](cudaStream_t stream) { head->run(stream); };
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
  const ProductOperands operands{context.address(op.x), context.address(op.weight),
                                 context.address(op.logits)};
  const auto product = context.products.get({.m = x.rows,
                                             .n = logits.cols,
                                             .k = x.cols,
                                             .transpose_b = true,
                                             .input = x.dtype,
                                             .alpha = op.scale},
                                            operands);
  return [product, operands, z = context.floats(op.logits), bias = context.floats(op.bias),
          size = logits.size(), classes = logits.cols](cudaStream_t stream) {
    product->run(operands, stream);
    if (bias == nullptr) return;
    bias_rows_kernel<<<std::min(4096, blocks_for(size, 256)), 256, 0, stream>>>(z, bias, size,
                                                                                classes);
    check_launch("logits");
  };
}

}  // namespace fathom::engine::cuda
