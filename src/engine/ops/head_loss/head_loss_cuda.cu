// Logits exist for a chunk of rows at a time, and their gradients overwrite them. Chunks are few
// and of equal size: GEMMs are faster the longer they are, but memory is held for the largest. With
// bf16 operands the logits are bf16 too; sums and losses are f32.
#include <map>

#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/device.cuh"

namespace fathom::engine::cuda {
namespace {

constexpr std::int64_t kChunkBytes = std::int64_t{256} << 20;
constexpr std::int64_t kRowUnit = 128;  // keeps every chunk aligned

std::int64_t fitting_rows(std::int64_t rows, std::int64_t bytes_per_row, std::int64_t bytes) {
  const std::int64_t fitting = std::max(kRowUnit, bytes / bytes_per_row / kRowUnit * kRowUnit);
  const std::int64_t chunks = (rows + fitting - 1) / fitting;
  const std::int64_t even = (rows + chunks - 1) / chunks;
  return std::min(rows, (even + kRowUnit - 1) / kRowUnit * kRowUnit);
}

struct LossArgs {
  Operand logits;  // x W^T times scale; overwritten by their gradients
  const float* bias;
  bool gradients;
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

template <int V>
__device__ inline Pack<V> logit_pack(const LossArgs& a, std::int64_t row, std::int64_t c) {
  Pack<V> z = load<V>(a.logits, row * a.classes + c);
  if (a.bias != nullptr) {
    const Pack<V> bias = load<V>(a.bias + c);
#pragma unroll
    for (int j = 0; j < V; ++j) z.v[j] += bias.v[j];
  }
  return z;
}

/// The block's row: its largest logit and sum, known to all threads.
__device__ inline TopAndSum over_block(TopAndSum own) {
  __shared__ TopAndSum shared[32];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    own = joined(own, {__shfl_xor_sync(0xffffffffu, own.top, offset),
                       __shfl_xor_sync(0xffffffffu, own.sum, offset)});
  }
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = own;
  __syncthreads();
  TopAndSum all = shared[0];
  for (int w = 1; w < blockDim.x / 32; ++w) all = joined(all, shared[w]);
  return all;
}

/// What a row's loss and gradients need, once its largest logit and sum are known.
struct RowEnd {
  float lse, factor;

  __device__ RowEnd(const LossArgs& a, int target, TopAndSum all)
      : lse(all.top + logf(all.sum)), factor(target >= 0 ? a.scale * a.scalars->loss_scale : 0) {}
  /// The gradient of logit z, without the target's -1.
  __device__ float slope(float z) const { return factor * __expf(z - lse); }
};

/// Warp: one row of bf16 logits, which it keeps in registers: N packs of 8 per lane.
template <int N>
__global__ void __launch_bounds__(128) loss_rows_kernel(LossArgs a, std::int64_t rows) {
  const int lane = threadIdx.x % 32, classes = static_cast<int>(a.classes);
  const std::int64_t row = blockIdx.x * std::int64_t{4} + threadIdx.x / 32;
  if (row >= rows) return;
  auto* logits = static_cast<__nv_bfloat16*>(a.logits.data) + row * classes;
  const int target = a.targets[row];
  const auto column = [&](int k) { return 8 * (lane + 32 * k); };
  uint4 kept[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if (column(k) < classes) kept[k] = *reinterpret_cast<const uint4*>(logits + column(k));
  }
  const auto pack = [&](int k) {
    return load<8>(reinterpret_cast<const __nv_bfloat16*>(&kept[k]));
  };
  TopAndSum all{-INFINITY, 0};
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if (column(k) >= classes) continue;
    const Pack<8> z = pack(k);
#pragma unroll
    for (int j = 0; j < 8; ++j) all.top = fmaxf(all.top, z.v[j]);
  }
  all.top = warp_max(all.top);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if (column(k) >= classes) continue;
    const Pack<8> z = pack(k);
#pragma unroll
    for (int j = 0; j < 8; ++j) all.sum += __expf(z.v[j] - all.top);
  }
  all.sum = warp_sum(all.sum);
  const RowEnd end(a, target, all);
  if (target < 0 && lane == 0) a.losses[row] = 0;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const int c = column(k);
    if (c >= classes) continue;
    Pack<8> z = pack(k);
    const bool hit = c <= target && target < c + 8;
    if (hit) a.losses[row] = end.lse - __bfloat162float(logits[target]);
    if (!a.gradients) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) z.v[j] = end.slope(z.v[j]);
    if (hit) {
#pragma unroll
      for (int j = 0; j < 8; ++j) z.v[j] -= c + j == target ? end.factor : 0.0f;
    }
    store<8>(logits + c, z);
  }
}

/// Block: one row of any kind, which it reads twice.
template <int V>
__global__ void loss_kernel(LossArgs a) {
  const std::int64_t row = blockIdx.x;
  const int target = a.targets[row];
  const std::int64_t across = std::int64_t{V} * blockDim.x;
  TopAndSum own{-INFINITY, 0};
  float hit = 0;  // the target's logit, in the thread that holds it
  bool is_hit = false;
  for (std::int64_t c = V * std::int64_t{threadIdx.x}; c < a.classes; c += across) {
    const Pack<V> z = logit_pack<V>(a, row, c);
    float top = z.v[0], sum = 0;
#pragma unroll
    for (int j = 1; j < V; ++j) top = fmaxf(top, z.v[j]);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      sum += __expf(z.v[j] - top);
      if (c + j == target) hit = z.v[j], is_hit = true;
    }
    own = joined(own, {top, sum});
  }
  const RowEnd end(a, target, over_block(own));
  if (is_hit) a.losses[row] = end.lse - hit;
  if (target < 0 && threadIdx.x == 0) a.losses[row] = 0;
  if (!a.gradients) return;
  for (std::int64_t c = V * std::int64_t{threadIdx.x}; c < a.classes; c += across) {
    Pack<V> z = logit_pack<V>(a, row, c);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      z.v[j] = end.slope(z.v[j]) - (c + j == target ? end.factor : 0.0f);
    }
    store<V>(a.logits, row * a.classes + c, z);
  }
}

void launch_loss(const LossArgs& args, std::int64_t rows, cudaStream_t stream) {
  const auto grid = static_cast<unsigned>(rows), row_grid = static_cast<unsigned>((rows + 3) / 4);
  const bool packs = args.classes % 8 == 0;
  if (packs && args.classes <= 4096 && args.logits.bf16 && args.bias == nullptr) {
    if (args.classes <= 1024) {
      loss_rows_kernel<4><<<row_grid, 128, 0, stream>>>(args, rows);
    } else if (args.classes <= 2048) {
      loss_rows_kernel<8><<<row_grid, 128, 0, stream>>>(args, rows);
    } else {
      loss_rows_kernel<16><<<row_grid, 128, 0, stream>>>(args, rows);
    }
  } else if (packs) {
    loss_kernel<8><<<grid, args.classes <= 2048 ? 128 : 512, 0, stream>>>(args);
  } else {
    loss_kernel<1><<<grid, 256, 0, stream>>>(args);
  }
  check_launch("head loss");
}

/// loss = loss_scale * sum of losses, in double, by one block.
__global__ void total_kernel(const float* losses, std::int64_t rows, const DeviceScalars* scalars,
                             float* loss) {
  __shared__ double shared[33];
  double sum = 0;
#pragma unroll 8
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
    const std::int64_t row_bytes = classes_ * bytes_of(type_);
    chunk_ = fitting_rows(rows_, row_bytes, kChunkBytes);
    const std::int64_t logit_bytes = (chunk_ * row_bytes + 255) / 256 * 256;
    context.scratch->reserve(logit_bytes);
    for (std::int64_t first = 0; op.d_bias.exists() && first < rows_; first += chunk_) {
      const std::int64_t count = std::min(chunk_, rows_ - first);
      const bool adds = first > 0 || op.d_bias_mode == GradMode::accumulate;
      bias_sums_[{first > 0, count}] = bind_period_sum(
          context, [this] { return logits(); }, context.floats(op.d_bias), count, classes_, 1,
          1 / op.scale, adds ? GradMode::accumulate : GradMode::overwrite, logit_bytes);
    }
  }

  /// Plans every GEMM the run will need, once the scratch is allocated.
  void prepare() {
    for (std::int64_t first = 0; first < rows_; first += chunk_) {
      const std::int64_t count = std::min(chunk_, rows_ - first);
      logits_gemm(first, count);
      if (op_.dx.exists()) input_gemm(first, count);
      if (op_.d_weight.exists()) weight_gemm(first, count);
    }
  }

  void run(cudaStream_t stream) {
    for (std::int64_t first = 0; first < rows_; first += chunk_) {
      const std::int64_t count = std::min(chunk_, rows_ - first);
      logits_gemm(first, count)(stream);
      launch_loss(
          {logits(), context_.floats(op_.bias), gradients_, context_.tokens(op_.targets) + first,
           context_.floats(op_.losses) + first, context_.scalars, classes_, op_.scale},
          count, stream);
      run_gradients(first, count, stream);
    }
  }

 private:
  void* at_row(TensorId id, std::int64_t row) const {
    const Tensor& tensor = context_.tensor(id);
    return static_cast<char*>(context_.address(id)) + row * tensor.cols * bytes_of(tensor.dtype);
  }
  Operand logits() const { return {context_.scratch->data(), type_ == DType::bf16}; }

  BoundOp bound(const GemmSpec& spec, const GemmOperands& operands) const {
    return [gemm = context_.gemms.get(spec, operands), operands](cudaStream_t stream) {
      gemm->run(operands, stream);
    };
  }
  BoundOp logits_gemm(std::int64_t first, std::int64_t count) const {
    return bound({.m = count,
                  .n = classes_,
                  .k = width_,
                  .transpose_b = true,
                  .input = type_,
                  .result = type_,
                  .alpha = op_.scale},
                 {at_row(op_.x, first), context_.address(op_.weight), logits().data});
  }
  BoundOp input_gemm(std::int64_t first, std::int64_t count) const {
    return bound({.m = count,
                  .n = width_,
                  .k = classes_,
                  .input = type_,
                  .result = context_.tensor(op_.dx).dtype,
                  .accumulate = op_.dx_mode == GradMode::accumulate},
                 {logits().data, context_.address(op_.weight), at_row(op_.dx, first)});
  }
  BoundOp weight_gemm(std::int64_t first, std::int64_t count) const {
    return bound({.m = classes_,
                  .n = width_,
                  .k = count,
                  .transpose_a = true,
                  .input = type_,
                  .accumulate = first > 0 || op_.d_weight_mode == GradMode::accumulate},
                 {logits().data, at_row(op_.x, first), context_.address(op_.d_weight)});
  }

  void run_gradients(std::int64_t first, std::int64_t count, cudaStream_t stream) {
    if (op_.dx.exists()) input_gemm(first, count)(stream);
    if (op_.d_weight.exists()) weight_gemm(first, count)(stream);
    if (op_.d_bias.exists()) bias_sums_.at({first > 0, count})(stream);
  }

  Context context_;
  DType type_;
  std::int64_t rows_, width_, classes_, chunk_ = 0;
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
  const std::int64_t rows = context.tensor(op.losses).size();
  SideWork total{.between = std::make_shared<Scratch>()};
  total.touched.reads.push_back(bytes_at(context.address(op.losses), 4 * rows));
  total.touched.writes.push_back(bytes_at(context.address(op.loss), 4));
  total.run = [=, losses = context.floats(op.losses), loss = context.floats(op.loss),
               scalars = context.scalars](cudaStream_t stream) {
    total_kernel<<<1, 1024, 0, stream>>>(losses, rows, scalars, loss);
    check_launch("loss");
  };
  context.beside(std::move(total));
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
  const GemmOperands operands{context.address(op.x), context.address(op.weight),
                              context.address(op.logits)};
  const auto gemm = context.gemms.get({.m = x.rows,
                                       .n = logits.cols,
                                       .k = x.cols,
                                       .transpose_b = true,
                                       .input = x.dtype,
                                       .alpha = op.scale},
                                      operands);
  return [gemm, operands, z = context.floats(op.logits), bias = context.floats(op.bias),
          size = logits.size(), classes = logits.cols,
          blocks = blocks_for(logits.size(), 256, context.gpu, 32)](cudaStream_t stream) {
    gemm->run(operands, stream);
    if (bias == nullptr) return;
    bias_rows_kernel<<<blocks, 256, 0, stream>>>(z, bias, size, classes);
    check_launch("logits");
  };
}

}  // namespace fathom::engine::cuda
