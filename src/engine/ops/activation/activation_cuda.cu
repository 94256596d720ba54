// A thread keeps to one pack of columns and walks down the rows: the bias stays in its registers,
// and so do the sums of its columns.
#include "engine/cuda/activation_value.cuh"
#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/device.cuh"

namespace fathom::engine::cuda {
namespace {

constexpr int kActivationThreads = 256;

struct Args {
  Operand u, y;              // forward
  Operand dy, du;            // backward
  std::uint8_t* slopes;      // written forward, read backward instead of u; or null
  const float* bias;         // added to u first; or null
  float* partial;            // column sums of du by part: [gridDim.y, width of u]; or null
  std::int64_t rows, width;  // of y
  bool accumulate;
};

template <int V>
__device__ inline Pack<V> bias_pack(const Args& a, std::int64_t c) {
  if (a.bias == nullptr) return Pack<V>{};
  return load<V>(a.bias + c);
}

template <int V>
__device__ inline void store_slopes(std::uint8_t* to, const Pack<V>& slope) {
  struct alignas(V) Bytes {
    std::uint8_t v[V];
  } bytes;
#pragma unroll
  for (int j = 0; j < V; ++j) {
    bytes.v[j] = static_cast<std::uint8_t>(__float2uint_rn(encoded_slope(slope.v[j])));
  }
  *reinterpret_cast<Bytes*>(to) = bytes;
}

template <int V>
__device__ inline Pack<V> load_slopes(const std::uint8_t* from) {
  struct alignas(V) Bytes {
    std::uint8_t v[V];
  };
  const Bytes bytes = *reinterpret_cast<const Bytes*>(from);
  Pack<V> slope;
#pragma unroll
  for (int j = 0; j < V; ++j) slope.v[j] = decoded_slope(bytes.v[j]);
  return slope;
}

template <ActivationKind kKind, int V, bool kQuick>
__global__ void __launch_bounds__(kActivationThreads) forward_kernel(Args a) {
  constexpr bool kGated = kKind == ActivationKind::swiglu;
  const std::int64_t c = (blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x) * V;
  if (c >= a.width) return;
  const std::int64_t stride = kGated ? 2 * a.width : a.width;
  const Pack<V> bias = bias_pack<V>(a, c);
  Pack<V> other_bias{};
  if constexpr (kGated) other_bias = bias_pack<V>(a, c + a.width);
  for (std::int64_t row = blockIdx.y * blockDim.y + threadIdx.y; row < a.rows;
       row += std::int64_t{gridDim.y} * blockDim.y) {
    Pack<V> value = load<V>(a.u, row * stride + c), other{};
    if constexpr (kGated) other = load<V>(a.u, row * stride + c + a.width);
    Pack<V> slope;
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const Value full = evaluate<kKind, kQuick>(value.v[j] + bias.v[j]);
      value.v[j] = full.y;
      slope.v[j] = full.slope;
      if constexpr (kGated) value.v[j] *= other.v[j] + other_bias.v[j];
    }
    store<V>(a.y, row * a.width + c, value);
    if (a.slopes != nullptr) store_slopes<V>(a.slopes + row * a.width + c, slope);
  }
}

/// Adds up the block's rows of threads and writes one row of partial sums.
template <int V>
__device__ inline void put_sums(const Args& a, std::int64_t c, std::int64_t stride,
                                const Pack<V>& sums, bool holds) {
  __shared__ float shared[kActivationThreads * V];
  float* own = shared + (threadIdx.y * blockDim.x + threadIdx.x) * V;
#pragma unroll
  for (int j = 0; j < V; ++j) own[j] = sums.v[j];
  __syncthreads();
  if (threadIdx.y == 0 && holds) {
    for (int j = 0; j < V; ++j) {
      float sum = 0;
      for (int y = 0; y < blockDim.y; ++y) sum += shared[(y * blockDim.x + threadIdx.x) * V + j];
      a.partial[blockIdx.y * stride + c + j] = sum;
    }
  }
  __syncthreads();
}

template <ActivationKind kKind, int V, bool kQuick>
__global__ void __launch_bounds__(kActivationThreads) backward_kernel(Args a) {
  constexpr bool kGated = kKind == ActivationKind::swiglu;
  const std::int64_t c = (blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x) * V;
  const bool holds = c < a.width;
  const std::int64_t stride = kGated ? 2 * a.width : a.width;
  Pack<V> bias{}, other_bias{}, sums{}, other_sums{};
  if (holds) bias = bias_pack<V>(a, c);
  if constexpr (kGated) {
    if (holds) other_bias = bias_pack<V>(a, c + a.width);
  }
  for (std::int64_t row = blockIdx.y * blockDim.y + threadIdx.y; holds && row < a.rows;
       row += std::int64_t{gridDim.y} * blockDim.y) {
    const Pack<V> d = load<V>(a.dy, row * a.width + c);
    Pack<V> u, du, other{}, d_other;
    u = a.slopes ? load_slopes<V>(a.slopes + row * a.width + c) : load<V>(a.u, row * stride + c);
    if constexpr (kGated) other = load<V>(a.u, row * stride + c + a.width);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const Value value = a.slopes ? Value{0, u.v[j]} : evaluate<kKind, kQuick>(u.v[j] + bias.v[j]);
      du.v[j] = d.v[j] * value.slope;
      if constexpr (kGated) {
        du.v[j] *= other.v[j] + other_bias.v[j];
        d_other.v[j] = d.v[j] * value.y;
        other_sums.v[j] += d_other.v[j];
      }
      sums.v[j] += du.v[j];
    }
    put<V>(a.du, row * stride + c, du, a.accumulate);
    if constexpr (kGated) put<V>(a.du, row * stride + c + a.width, d_other, a.accumulate);
  }
  if (a.partial == nullptr) return;
  put_sums<V>(a, c, stride, sums, holds);
  if constexpr (kGated) put_sums<V>(a, c + a.width, stride, other_sums, holds);
}

using Kernel = void (*)(Args);

template <ActivationKind kKind, bool kBackward, int V, bool kQuick>
constexpr Kernel kernel_of() {
  if constexpr (kBackward) {
    return backward_kernel<kKind, V, kQuick>;
  } else {
    return forward_kernel<kKind, V, kQuick>;
  }
}

template <ActivationKind kKind, bool kBackward>
Kernel kernel_for(bool packed, bool quick) {
  if (packed) {
    return quick ? kernel_of<kKind, kBackward, 8, true>() : kernel_of<kKind, kBackward, 8, false>();
  }
  return quick ? kernel_of<kKind, kBackward, 1, true>() : kernel_of<kKind, kBackward, 1, false>();
}

template <bool kBackward>
Kernel kernel_for(ActivationKind kind, bool packed, bool quick) {
  switch (kind) {
    case ActivationKind::relu:
      return kernel_for<ActivationKind::relu, kBackward>(packed, quick);
    case ActivationKind::gelu:
      return kernel_for<ActivationKind::gelu, kBackward>(packed, quick);
    case ActivationKind::gelu_tanh:
      return kernel_for<ActivationKind::gelu_tanh, kBackward>(packed, quick);
    case ActivationKind::swiglu:
      break;
  }
  return kernel_for<ActivationKind::swiglu, kBackward>(packed, quick);
}

struct Launch {
  Kernel kernel;
  dim3 grid, block;

  void operator()(const Args& args, cudaStream_t stream) const {
    kernel<<<grid, block, 0, stream>>>(args);
    check_launch("activation");
  }
};

/// As many blocks as the device holds at once; each walks down its share of the rows.
template <bool kBackward>
Launch launch_for(ActivationKind kind, const Args& args, const Gpu& gpu) {
  const bool packed = args.width % 8 == 0;
  const Kernel kernel = kernel_for<kBackward>(kind, packed, (kBackward ? args.dy : args.u).bf16);
  int resident = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kActivationThreads, 0),
        "activation");
  const std::int64_t packs = args.width / (packed ? 8 : 1);
  const auto across = static_cast<unsigned>(std::min<std::int64_t>(packs, kActivationThreads));
  const dim3 block(across, std::max(1u, kActivationThreads / across));
  const auto columns = static_cast<unsigned>((packs + across - 1) / across);
  const std::int64_t most =
      std::max<std::int64_t>(1, std::int64_t{resident} * gpu.multiprocessors / columns);
  const auto parts = std::min<std::int64_t>(most, blocks_for(args.rows, static_cast<int>(block.y)));
  return {kernel, dim3(columns, static_cast<unsigned>(parts)), block};
}

Args backward_args(const ActivationBackward& op, const Context& context) {
  const Tensor& dy = context.tensor(op.dy);
  Args args{};
  args.dy = context.operand(op.dy);
  args.u = context.operand(op.u);
  args.du = context.operand(op.du);
  args.slopes = static_cast<std::uint8_t*>(context.address(op.slopes));
  args.bias = context.floats(op.bias);
  args.rows = dy.rows;
  args.width = dy.cols;
  args.accumulate = op.mode == GradMode::accumulate;
  return args;
}

}  // namespace

BoundOp bind(const Activation& op, const Context& context) {
  Args args{};
  args.u = context.operand(op.u);
  args.y = context.operand(op.y);
  args.slopes = static_cast<std::uint8_t*>(context.address(op.slopes));
  args.bias = context.floats(op.bias);
  args.rows = context.tensor(op.y).rows;
  args.width = context.tensor(op.y).cols;
  const Launch launch = launch_for<false>(op.kind, args, context.gpu);
  return [args, launch](cudaStream_t stream) { launch(args, stream); };
}

BoundOp bind(const ActivationBackward& op, const Context& context) {
  const Args args = backward_args(op, context);
  const Launch launch = launch_for<true>(op.kind, args, context.gpu);
  return [args, launch](cudaStream_t stream) { launch(args, stream); };
}

BoundOp bind(const WithBiasGradient<ActivationBackward>& op, const Context& context) {
  const Args bare = backward_args(op.maker, context);
  const Launch launch = launch_for<true>(op.maker.kind, bare, context.gpu);
  const std::int64_t width = context.tensor(op.maker.du).cols;
  const ColumnSums sums = column_sums(op.bias, context);
  context.scratch->reserve(launch.grid.y * width * 4);
  return [=, scratch = context.scratch](cudaStream_t stream) {
    Args args = bare;
    args.partial = static_cast<float*>(scratch->data());
    launch(args, stream);
    reduce_parts(args.partial, launch.grid.y, width, sums, 1, stream);
  };
}

}  // namespace fathom::engine::cuda
